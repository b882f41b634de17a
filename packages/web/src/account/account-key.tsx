/** The account's key for what it signs, where this device has no copy: opened with the backup, for a while. */
import type { PasskeyDocument } from '@posthouse/client/web/passkey';
import type { WalletError } from '@posthouse/protocol';
import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { loadCryptography } from '../engine/load-part.ts';
import { shortId } from '../parts/names.ts';
import type { App } from '../state/app.ts';
import { isLocked } from '../state/stores.ts';
import { own } from '../text/own.ts';
import { BackupForm } from './backup-form.tsx';
import { faultText, Said } from './faults.ts';
import { k } from './key-passkey-text.ts';
import {
  keepPasskeys,
  keptPasskeys,
  passkeyFault,
  usableHere,
  useCanPasskey,
} from './key-passkeys.ts';
import { l } from './lock-text.ts';
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
  /** The backup whose password opened it: what else opens it has that as its fallback. */
  const [openedFile, setOpenedFile] = useState<File | undefined>();
  const canPasskey = useCanPasskey();
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
  const { config } = app;
  const { id } = app.account;
  const all = keptPasskeys(id);
  const passkeys = usableHere(all);
  if (opened.value !== undefined) {
    const add = (key: Uint8Array, file: File) =>
      run(
        k.making,
        async () => {
          const { passkeyForBackup } = await loadCryptography();
          const details = { file, name: passkeyName(id), others: all };
          keepPasskeys(id, [await passkeyForBackup(config, key, details)]);
        },
        { words: walletFault, say: l.passkeyAdded },
      );
    const [key, file] = [opened.value, openedFile];
    return (
      <>
        <p role="status">{s.keyOpen}</p>
        {canPasskey && !isLocked() && passkeys.length === 0 && file !== undefined && (
          <button type="button" class="plain" disabled={isBusy} onClick={() => void add(key, file)}>
            {k.nextTime}
          </button>
        )}
        {report}
      </>
    );
  }
  const openBy = (how: () => Promise<Uint8Array>) => {
    const work = async () => {
      const key = await how();
      const { accountOfKey } = await loadCryptography();
      if (accountOfKey(config, key) !== id) throw new Said(s.otherKey);
      opened.value = key;
    };
    return run(own.restoring, work, { words: walletFault });
  };
  const open = async (file: File, password: string) => {
    const how = async () => (await loadCryptography()).openBackup(config, file, password);
    if (await openBy(how)) setOpenedFile(file);
    return true;
  };
  const openByPasskey = async (documents: readonly PasskeyDocument[], file?: File) => {
    await openBy(async () => {
      const { isBackupOf, openKeyByPasskey } = await loadCryptography();
      const key = await openKeyByPasskey(config, documents);
      // The next time the file is not needed.
      if (file !== undefined && (await isBackupOf(config, file, key))) keepPasskeys(id, documents);
      return key;
    });
  };
  return (
    <section class="box" aria-label={s.key}>
      <h2>{s.key}</h2>
      <p>{s.keyText}</p>
      {passkeys.length > 0 && (
        <p>
          <button type="button" disabled={isBusy} onClick={() => void openByPasskey(passkeys)}>
            {l.byPasskey}
          </button>
        </p>
      )}
      <BackupForm {...{ label: s.openKey, isBusy, open, openByPasskey }}>{report}</BackupForm>
    </section>
  );
}

/** What the person sees in the list of passkeys. */
export const passkeyName = (account: string) => `${s.key} ${shortId(account)}`;

/** What is wrong with a backup, its password or its passkey. */
export function walletFault(error: unknown): string {
  const { fault } = error as Partial<WalletError>;
  if (fault === undefined) return passkeyFault(error) ?? faultText(error);
  return fault === 'password' ? own.wrongPassword : own.notABackup;
}
