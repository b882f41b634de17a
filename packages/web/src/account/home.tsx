import type { MovePreview, UnfinishedMove } from '@posthouse/client';
import { visibleName } from '@posthouse/client/visible-text';
import { useEffect, useState } from 'preact/hooks';
import { Field } from '../parts/controls.tsx';
import type { App } from '../state/app.ts';
import { text } from '../text/index.ts';
import { AccountKey, withKey } from './account-key.tsx';
import { listedRelays, relayPage } from './relays.ts';
import { s } from './settings-text.ts';
import { SubScreen, useWork } from './sub-screen.tsx';

/** The capability of a relay that stores attachments (decision 0032). */
const blobs = 'posthouse.blobs.v1';
/** Seconds by which clocks may differ before it matters (03 §12). */
const clockDifference = 300;
const stepNames = Object.keys(s.steps);

/** The home relay, and moving to another one (03 §12). */
export function Home({ app }: { readonly app: App }) {
  const [home, setHome] = useState('');
  const [unfinished, setUnfinished] = useState<UnfinishedMove | undefined>();
  const read = async () => {
    setHome(await app.account.home.relayId());
    setUnfinished(await app.account.home.unfinishedMove());
  };
  const { run, report } = useWork();
  useEffect(() => {
    void run('', read);
  }, []);
  const page = relayPage(app.config, home);
  return (
    <SubScreen title={s.home}>
      <p>{s.homeText}</p>
      <dl>
        {home === app.config.relayId && (
          <>
            <dt>{s.name}</dt>
            <dd>{app.config.name}</dd>
          </>
        )}
        <dt>{s.id}</dt>
        <dd class="id">{home}</dd>
        <dt>{s.where}</dt>
        <dd>{page === undefined ? s.unknown : new URL(page).host}</dd>
      </dl>
      {page !== undefined && (
        <p>
          <a href={page} target="_blank" rel="noopener noreferrer">
            {s.sees}
          </a>
        </p>
      )}
      {report}
      {home !== '' && <Move key={home} {...{ app, home, unfinished, read }} />}
    </SubScreen>
  );
}

function Move({
  app,
  home,
  unfinished,
  read,
}: {
  readonly app: App;
  readonly home: string;
  readonly unfinished: UnfinishedMove | undefined;
  readonly read: () => Promise<void>;
}) {
  const [to, setTo] = useState('');
  const [code, setCode] = useState('');
  const [preview, setPreview] = useState<MovePreview | undefined>();
  const [step, setStep] = useState('');
  const { isBusy, run, report } = useWork();
  const { home: moving } = app.account;
  const others = listedRelays(app.config).filter(({ relay_id }) => relay_id !== home);
  const look = () => run(s.looking, async () => setPreview(await moving.preview(to.trim())));
  const move = async (relayId: string) => {
    // The step is read from the store: the worker does the move, and a callback cannot go there.
    const watch = setInterval(() => {
      moving.unfinishedMove().then(
        (found) => setStep(found?.step ?? ''),
        () => undefined,
      );
    }, 500);
    const inviteCode = code.trim();
    const work = () =>
      moving.move(relayId, { ...(inviteCode !== '' && { inviteCode }), ...withKey() });
    const isDone = await run(s.begin, work);
    clearInterval(watch);
    setStep('');
    if (isDone) app.notice.value = s.moved;
    await read().catch(() => undefined);
  };
  const giveUp = async () => {
    if (await run(s.giveUp, () => moving.cancelMove())) app.notice.value = s.givenUp;
    await read().catch(() => undefined);
  };
  const number = stepNames.indexOf(step) + 1;
  return (
    <section aria-labelledby="move">
      <h2 id="move">{s.move}</h2>
      <p>{s.moveText}</p>
      <AccountKey app={app} />
      {unfinished !== undefined && !isBusy && (
        <div class="box">
          <p>{s.unfinished(unfinished.to)}</p>
          <div class="row">
            <button type="button" onClick={() => void move(unfinished.to)}>
              {s.goOn}
            </button>
            {unfinished.canCancel && (
              <button type="button" class="plain" onClick={() => void giveUp()}>
                {s.giveUp}
              </button>
            )}
          </div>
        </div>
      )}
      {unfinished === undefined && preview === undefined && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void look();
          }}
        >
          {others.length > 0 && (
            <fieldset>
              <legend>{s.otherRelays}</legend>
              {others.map(({ relay_id, endpoint }) => (
                <label key={relay_id}>
                  <input
                    type="radio"
                    name="relay"
                    checked={to === relay_id}
                    onChange={() => setTo(relay_id)}
                  />{' '}
                  {new URL(endpoint).host}
                </label>
              ))}
            </fieldset>
          )}
          <Field {...{ label: s.relayId, value: to, onValue: setTo }} required />
          <button type="submit" disabled={isBusy}>
            {s.look}
          </button>
        </form>
      )}
      {preview !== undefined && (
        <div class="box">
          <h3>{s.preview(visibleName(preview.to.name))}</h3>
          <ul>
            {linesOf(preview).map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
          {preview.from.relayId !== preview.to.relayId && (
            <>
              <Field {...{ label: s.code, value: code, onValue: setCode }} />
              <button type="button" disabled={isBusy} onClick={() => void move(preview.to.relayId)}>
                {s.begin}
              </button>
            </>
          )}
          <button
            type="button"
            class="plain"
            disabled={isBusy}
            onClick={() => setPreview(undefined)}
          >
            {text.cancel}
          </button>
        </div>
      )}
      {number > 0 && (
        <p role="status">
          {s.moving(number, stepNames.length)}: {s.steps[step]}
          <br />
          <progress value={number} max={stepNames.length} aria-label={s.move} />
        </p>
      )}
      {report}
    </section>
  );
}

/** What a move does and what stands against it. The client's own sentences are English. */
function linesOf({ from, to, moves, outbox, oldMessageRetention = 0 }: MovePreview): string[] {
  if (from.relayId === to.relayId) return [s.same];
  return [
    s.days(Math.floor(to.messageRetention / 86_400)),
    s.taken(moves.devices, moves.contacts),
    ...(outbox > 0 ? [s.waiting(outbox)] : []),
    ...(to.messageRetention < oldMessageRetention ? [s.shorter] : []),
    ...(from.answers ? [] : [s.oldGone]),
    ...(Math.abs(to.clockAhead) > clockDifference ? [s.clock] : []),
    ...(to.capabilities.includes(blobs) ? [] : [s.noStore]),
  ];
}
