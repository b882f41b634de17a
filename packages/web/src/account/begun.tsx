import { isClientError } from '@posthouse/client/web';
import { useEffect, useState } from 'preact/hooks';
import type { App } from '../state/app.ts';
import { r } from './restore-text.ts';
import { Ask, useWork } from './sub-screen.tsx';

/** A set-up or restore that was interrupted: go on with it, or discard it. */
export function Begun({ app, code }: { readonly app: App; readonly code: string }) {
  const [isBegun, setBegun] = useState(false);
  /** Whether it may have taken effect, so that discarding may lose the account. */
  const [isSent, setSent] = useState(false);
  const { isBusy, run, report } = useWork();
  useEffect(() => {
    app.client.accountKey().then(
      (key) => {
        setBegun(key !== undefined);
        key?.fill(0);
      },
      () => undefined,
    );
  }, []);
  const discard = async () => {
    const work = async () => {
      try {
        await app.client.discardSetUp({ evenIfSent: isSent });
        setBegun(false);
      } catch (error) {
        if (!isClientError(error, 'already_sent')) throw error;
        setSent(true);
      }
    };
    await run(r.discard, work);
  };
  if (!isBegun) return null;
  return (
    <section class="box">
      <p>{r.begun}</p>
      <div class="row">
        <button
          type="button"
          disabled={isBusy}
          onClick={() => void run(r.goingOn, () => app.setUp({ inviteCode: code }))}
        >
          {r.goOn}
        </button>
        {!isSent && (
          <button type="button" class="plain" disabled={isBusy} onClick={() => void discard()}>
            {r.discard}
          </button>
        )}
      </div>
      {isSent && (
        <Ask label={r.discard} question={r.sent}>
          <button type="button" class="danger" disabled={isBusy} onClick={() => void discard()}>
            {r.discardAnyway}
          </button>
        </Ask>
      )}
      {report}
    </section>
  );
}
