import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import { Field } from '../parts/controls.tsx';
import { text } from '../text/index.ts';
import { own } from '../text/own.ts';

/** Asks for a backup and its password. */
export function BackupForm({
  label,
  isBusy,
  open,
  children,
}: {
  /** Of its button. */
  readonly label: string;
  readonly isBusy: boolean;
  /** The password is asked for again after it returned `true`. */
  readonly open: (file: File, password: string) => Promise<boolean>;
  readonly children: ComponentChildren;
}) {
  const id = useId();
  const [file, setFile] = useState<File | undefined>();
  const [password, setPassword] = useState('');
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
          onChange={({ currentTarget }) => setFile(currentTarget.files?.[0])}
        />
      </p>
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
