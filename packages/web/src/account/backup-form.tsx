import type { PasskeyDocument } from '@posthouse/client/web/passkey';
import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import { Field } from '../parts/controls.tsx';
import { text } from '../text/index.ts';
import { own } from '../text/own.ts';
import { k } from './key-passkey-text.ts';
import { passkeysIn } from './key-passkeys.ts';

/** Asks for a backup and its password, or for a passkey that the backup has. */
export function BackupForm({
  label,
  isBusy,
  open,
  openByPasskey,
  children,
}: {
  /** Of its button. */
  readonly label: string;
  readonly isBusy: boolean;
  /** The password is asked for again after it returned `true`. */
  readonly open: (file: File, password: string) => Promise<boolean>;
  readonly openByPasskey: (passkeys: readonly PasskeyDocument[], file: File) => Promise<unknown>;
  readonly children: ComponentChildren;
}) {
  const id = useId();
  const [file, setFile] = useState<File | undefined>();
  const [password, setPassword] = useState('');
  const [passkeys, setPasskeys] = useState<readonly PasskeyDocument[]>([]);
  const choose = async (chosen: File | undefined) => {
    setFile(chosen);
    setPasskeys(chosen === undefined ? [] : await passkeysIn(chosen));
  };
  const submit = async () => {
    if (file !== undefined && (await open(file, password))) setPassword('');
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <p class="field">
        <label for={id}>{own.backupFile}</label>
        <input
          id={id}
          type="file"
          required
          accept=".json,application/json"
          onChange={({ currentTarget }) => void choose(currentTarget.files?.[0])}
        />
      </p>
      {file !== undefined && passkeys.length > 0 && (
        <p>
          <button
            type="button"
            disabled={isBusy}
            onClick={() => void openByPasskey(passkeys, file)}
          >
            {k.fileByPasskey}
          </button>
        </p>
      )}
      <Field
        {...{ label: text.password, value: password, onValue: setPassword, type: 'password' }}
        autoComplete="current-password"
        required
      />
      <button type="submit" disabled={isBusy}>
        {label}
      </button>
      {children}
    </form>
  );
}
