import { isClientError } from '@posthouse/client/web';
import { useRef, useState } from 'preact/hooks';
import { loadCryptography } from '../engine/load-part.ts';
import type { App } from '../state/app.ts';
import { own } from '../text/own.ts';
import { walletFault } from './account-key.tsx';
import { BackupForm } from './backup-form.tsx';
import { r } from './restore-text.ts';
import { Sure, useWork } from './sub-screen.tsx';

/** Sets this device up with the key in a backup; recovers the account if nothing else of it is left. */
export function Restore({ app, code }: { readonly app: App; readonly code: string }) {
  const given = useRef<{ readonly file: File; readonly password: string } | undefined>(undefined);
  /** Whether the account's relay gave no answer. */
  const [isLost, setLost] = useState(false);
  const { isBusy, run, report } = useWork();
  const restore = async (recover: boolean) => {
    if (given.current === undefined) return;
    const { file, password } = given.current;
    const work = async () => {
      const { openBackup } = await loadCryptography();
      const accountKey = await openBackup(app.config, file, password);
      try {
        await app.setUp({ inviteCode: code, accountKey, recover });
        app.backedUp();
      } catch (error) {
        const isGone = ['relay_unreachable', 'no_relay'] as const;
        setLost(navigator.onLine && isGone.some((each) => isClientError(error, each)));
        throw error;
      }
    };
    await run(recover ? r.recovering : own.restoring, work, { words: walletFault });
  };
  return (
    <BackupForm
      {...{ label: own.openBackup, isBusy }}
      open={async (file, password) => {
        given.current = { file, password };
        await restore(false);
        // It may be needed once more, to recover.
        return false;
      }}
    >
      {report}
      {isLost && (
        <section class="box" aria-labelledby="lost">
          <h2 id="lost">{r.lost}</h2>
          <p>{r.lostText}</p>
          <p class="fault">{r.warning}</p>
          <Sure {...{ label: r.recover, sure: r.sure, isBusy, work: () => restore(true) }} />
        </section>
      )}
    </BackupForm>
  );
}
