import { useState } from 'preact/hooks';
import { passkeyName } from '../account/account-key.tsx';
import { k } from '../account/key-passkey-text.ts';
import {
  keepPasskeys,
  keptPasskeys,
  passkeyFault,
  usableHere,
  useCanPasskey,
} from '../account/key-passkeys.ts';
import { PasskeyChoice } from '../account/passkey-choice.tsx';
import { PasskeyList } from '../account/passkey-list.tsx';
import { loadCryptography } from '../engine/load-part.ts';
import { Field, Screen } from '../parts/controls.tsx';
import { Fault } from '../parts/fault.tsx';
import type { App } from '../state/app.ts';
import { type SavedFile, saveFile } from '../state/save-file.ts';
import { text } from '../text/index.ts';
import { own } from '../text/own.ts';

const shortest = 10;

/** Saves the account's key in a file that a password opens. */
export function Backup({ app }: { readonly app: App }) {
  const [password, setPassword] = useState('');
  const [again, setAgain] = useState('');
  const canPasskey = useCanPasskey();
  const [withPasskey, setWithPasskey] = useState(false);
  const passkeys = keptPasskeys(app.account.id);
  const hasPasskey = usableHere(passkeys).length > 0;
  const makesPasskey = canPasskey === true && !hasPasskey && withPasskey;
  const [isSealing, setSealing] = useState(false);
  const [fault, setFault] = useState<unknown>('');
  const [saved, setSaved] = useState<SavedFile | undefined>();

  const seal = async () => {
    if ([...password].length < shortest) return setFault(text.passwordShort);
    if (password !== again) return setFault(text.passwordDiffers);
    setFault('');
    setSealing(true);
    try {
      const key = await app.client.accountKey();
      if (key === undefined) return setFault(own.keyNotHere);
      const { sealBackup } = await loadCryptography();
      const newPasskey = makesPasskey ? passkeyName(app.account.id) : undefined;
      const made = await sealBackup(app.config, key, { password, passkeys, newPasskey });
      saveFile(made.file);
      setSaved(made.file);
      keepPasskeys(app.account.id, made.passkeys);
    } catch (error) {
      setFault(passkeyFault(error) ?? error);
      // The person may try again, or go on without it.
      if (makesPasskey) setWithPasskey(false);
    } finally {
      setSealing(false);
    }
  };

  return (
    <Screen title={text.backup}>
      <p>{own.backupText}</p>
      {saved === undefined ? (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void seal();
          }}
        >
          <Field
            {...{ label: text.password, help: text.passwordShort, type: 'password' }}
            {...{ value: password, onValue: setPassword, autoComplete: 'new-password' }}
            required
          />
          <Field
            {...{ label: text.passwordAgain, type: 'password', value: again, onValue: setAgain }}
            autoComplete="new-password"
            required
          />
          {hasPasskey ? (
            <p>{k.alsoOpens}</p>
          ) : (
            <PasskeyChoice {...{ canPasskey, isChosen: withPasskey, onChoice: setWithPasskey }} />
          )}
          <button type="submit" disabled={isSealing}>
            {isSealing ? own.sealing : own.saveBackup}
          </button>
        </form>
      ) : (
        <>
          <p>
            <strong>{saved.name}</strong>
          </p>
          <p>{own.backupCheck}</p>
          <button
            type="button"
            onClick={() => {
              app.backedUp();
              history.back();
            }}
          >
            {own.backupSaved}
          </button>
        </>
      )}
      <div role="alert" class="fault">
        <Fault error={fault} />
      </div>
      <PasskeyList account={app.account.id} />
    </Screen>
  );
}
