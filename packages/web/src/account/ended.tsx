/** A device that the relay serves no more: removed by another device, expired, or blocked. */
import { Screen } from '../parts/controls.tsx';
import { joinKey, show } from '../router.ts';
import type { App } from '../state/app.ts';
import { ending } from '../state/ending.ts';
import { own } from '../text/own.ts';
import { e } from './ended-text.ts';
import { eraseDevice } from './erase-device.ts';
import { s } from './settings-text.ts';
import { Ask } from './sub-screen.tsx';

const isRemoved = () => ending.value === 'device_unknown';
const kind = () => (isRemoved() ? 'device_unknown' : 'forbidden');

/** In one sentence, also in place of the composer. */
export function Why() {
  return <>{e.why[kind()]}</>;
}

/** Stays on every screen for as long as it is true. */
export function EndedNotice() {
  return (
    <p role="status" class="notice">
      <Why />
      <button type="button" onClick={() => show({ screen: 'ended' })}>
        {e.whatNow}
      </button>
    </p>
  );
}

/** What happened, what is still here, and what can be done. */
export function Ended({ app }: { readonly app: App }) {
  const waiting = app.conversations.value.reduce((sum, each) => sum + each.waiting, 0);
  const joinAgain = () =>
    app.endWith(async () => {
      const { publicKey } = app.account;
      await eraseDevice();
      joinKey.value = publicKey;
    });
  return (
    <Screen title={e.why[kind()]}>
      <p>{e.happened[kind()]}</p>
      {!isRemoved() && (
        <dl>
          <dt>{own.yourId}</dt>
          <dd class="id">{app.account.id}</dd>
        </dl>
      )}
      <button type="button" class="plain" onClick={() => location.reload()}>
        {e.askAgain}
      </button>
      <h2>{e.still}</h2>
      <p>{e.stillText}</p>
      {waiting > 0 && <p>{e.waiting(waiting)}</p>}
      <button type="button" onClick={() => show({ screen: 'settings', page: 'export' })}>
        {s.exporting}
      </button>
      {isRemoved() && (
        <>
          <h2>{e.joinAgain}</h2>
          <p>{e.joinAgainText}</p>
          <p>{e.noDevice}</p>
          <Ask label={e.joinAgain} question={e.joinSure}>
            <button type="button" class="danger" onClick={() => void joinAgain()}>
              {e.joinNow}
            </button>
          </Ask>
        </>
      )}
      <h2>{s.erase}</h2>
      <p>{s.eraseText}</p>
      <button
        type="button"
        class="plain"
        onClick={() => show({ screen: 'settings', page: 'erase' })}
      >
        {s.erase}
      </button>
    </Screen>
  );
}
