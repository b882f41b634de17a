import { useEffect, useState } from 'preact/hooks';
import { loadCryptography } from '../engine/load-part.ts';
import { Field } from '../parts/controls.tsx';
import type { App } from '../state/app.ts';
import { text } from '../text/index.ts';
import { clearShown, eraseDevice, forgetPlain } from './erase-device.ts';
import { ifLockStays, keptLock, lockFault } from './kept-lock.ts';
import { l } from './lock-text.ts';
import { s } from './settings-text.ts';
import { Ask, useWork } from './sub-screen.tsx';

/** The first screen of a locked device. */
export function Unlock({ app }: { readonly app: App }) {
  const [password, setPassword] = useState('');
  const { isBusy, run, report, setFault } = useWork();
  const lock = keptLock();
  useEffect(() => {
    clearShown().catch(() => undefined);
  }, []);
  const open = async (how: () => Promise<Uint8Array>) => {
    const work = async () => {
      const key = await how();
      await ifLockStays(() => app.openStore(key.slice()));
      key.fill(0);
      // A lock that was interrupted left what is not encrypted. Only an account shows that it is not needed.
      if (app.phase.peek().kind === 'ready') forgetPlain().catch(() => undefined);
    };
    await run(l.opening, work, { words: lockFault });
  };
  const erase = () =>
    run(s.erasing, async () => {
      await eraseDevice(() => setFault(l.otherTabs));
      location.reload();
    });
  return (
    <main class="welcome">
      <h1 tabIndex={-1}>{l.title}</h1>
      <p>{l.titleText}</p>
      {lock === undefined && <p class="fault">{l.damaged}</p>}
      {lock !== undefined && lock.passkeys.length > 0 && (
        <p>
          <button
            type="button"
            disabled={isBusy}
            onClick={() =>
              void open(async () => (await loadCryptography()).openByPasskey(app.config, lock))
            }
          >
            {l.byPasskey}
          </button>
        </p>
      )}
      {lock !== undefined && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void open(async () => (await loadCryptography()).openLock(app.config, lock, password));
          }}
        >
          <Field
            {...{ label: text.password, type: 'password', value: password, onValue: setPassword }}
            autoComplete="current-password"
            required
          />
          <button type="submit" disabled={isBusy}>
            {l.open}
          </button>
        </form>
      )}
      {report}
      <Ask label={l.forgotten} question={l.forgottenText}>
        <button type="button" class="danger" disabled={isBusy} onClick={() => void erase()}>
          {s.eraseNow}
        </button>
      </Ask>
    </main>
  );
}
