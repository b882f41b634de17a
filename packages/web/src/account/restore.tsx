import { isClientError } from '@posthouse/client/web';
import type { PasskeyDocument } from '@posthouse/client/web/passkey';
import { useRef, useState } from 'preact/hooks';
import { loadCryptography } from '../engine/load-part.ts';
import type { App } from '../state/app.ts';
import { own } from '../text/own.ts';
import { walletFault } from './account-key.tsx';
import { BackupForm } from './backup-form.tsx';
import { keepPasskeys, passkeysIn } from './key-passkeys.ts';
import { r } from './restore-text.ts';
import { Sure, useWork } from './sub-screen.tsx';

interface Given {
  readonly file: File;
  readonly open: () => Promise<Uint8Array>;
  readonly passkeys: readonly PasskeyDocument[];
}

/** Sets this device up with the key in a backup; recovers the account if nothing else of it is left. */
export function Restore({ app, code }: { readonly app: App; readonly code: string }) {
  /** How the key is opened, and the passkeys that open it. */
  const given = useRef<Given | undefined>(undefined);
  /** Whether the account's relay gave no answer. */
  const [isLost, setLost] = useState(false);
  const { isBusy, run, report } = useWork();
  const restore = async (recover: boolean) => {
    if (given.current === undefined) return;
    const { file, open, passkeys } = given.current;
    const work = async () => {
      const accountKey = await open();
      // A passkey may have opened a file without a whole wallet, which no password opens.
      const isBackup = await (await loadCryptography()).isBackupOf(app.config, file, accountKey);
      try {
        await app.setUp({ inviteCode: code, accountKey, recover });
        if (isBackup) {
          app.backedUp();
          keepPasskeys(app.account.id, passkeys);
        }
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
        given.current = {
          file,
          open: async () => (await loadCryptography()).openBackup(app.config, file, password),
          passkeys: await passkeysIn(file),
        };
        await restore(false);
        // It may be needed once more, to recover.
        return false;
      }}
      openByPasskey={(passkeys, file) => {
        given.current = {
          file,
          open: async () => (await loadCryptography()).openKeyByPasskey(app.config, passkeys),
          passkeys,
        };
        return restore(false);
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
