/** The account's key for what it signs, where this device has no copy: opened with the backup, for a while. */
import type { WalletError } from '@posthouse/protocol';
import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { loadCryptography } from '../engine/load-part.ts';
import type { App } from '../state/app.ts';
import { own } from '../text/own.ts';
import { BackupForm } from './backup-form.tsx';
import { faultText, Said } from './faults.ts';
import { s } from './settings-text.ts';
import { useWork } from './sub-screen.tsx';

const opened = signal<Uint8Array | undefined>(undefined);

/** The option of calls that the account key signs; without an opened one, the stored one is used. */
export function withKey(): { readonly accountKey?: Uint8Array } {
  // A copy: the client moves what it is given to the worker, and overwrites it there.
  return opened.value === undefined ? {} : { accountKey: opened.value.slice() };
}

function forget(): void {
  opened.value?.fill(0);
  opened.value = undefined;
}

/** Asks for the backup if this device has no copy of the key. */
export function AccountKey({ app }: { readonly app: App }) {
  const [isMissing, setMissing] = useState(false);
  const { isBusy, run, report } = useWork();
  useEffect(() => {
    app.client.accountKey().then(
      (key) => {
        setMissing(key === undefined);
        key?.fill(0);
      },
      () => undefined,
    );
    return forget;
  }, []);
  if (!isMissing) return null;
  if (opened.value !== undefined) return <p role="status">{s.keyOpen}</p>;
  const open = async (file: File, password: string) => {
    const work = async () => {
      const { accountOfKey, openBackup } = await loadCryptography();
      const key = await openBackup(app.config, file, password);
      if (accountOfKey(app.config, key) !== app.account.id) throw new Said(s.otherKey);
      opened.value = key;
    };
    await run(own.restoring, work, { words: walletFault });
    return true;
  };
  return (
    <section class="box" aria-label={s.key}>
      <h2>{s.key}</h2>
      <p>{s.keyText}</p>
      <BackupForm {...{ label: s.openKey, isBusy, open }}>{report}</BackupForm>
    </section>
  );
}

/** What is wrong with a backup or its password. */
export function walletFault(error: unknown): string {
  const { fault } = error as Partial<WalletError>;
  if (fault === undefined) return faultText(error);
  return fault === 'password' ? own.wrongPassword : own.notABackup;
}
