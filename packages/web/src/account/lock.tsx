import { useState } from 'preact/hooks';
import { loadCryptography } from '../engine/load-part.ts';
import { Field } from '../parts/controls.tsx';
import { shortId } from '../parts/names.ts';
import type { App } from '../state/app.ts';
import { isLocked, lockedStore, readLock } from '../state/stores.ts';
import { text } from '../text/index.ts';
import { deleteStore, forgetPlain } from './erase-device.ts';
import { alone, keptLock, lockFault } from './kept-lock.ts';
import { useCanPasskey } from './key-passkeys.ts';
import { l } from './lock-text.ts';
import { PasskeyChoice } from './passkey-choice.tsx';
import { SubScreen, useWork } from './sub-screen.tsx';

/** Characters of a password at least, as for backups. */
const shortest = 10;

/** Encrypting what this device stores, and the end of that. */
export function LockPage({ app }: { readonly app: App }) {
  const canPasskey = useCanPasskey() === true;
  return (
    <SubScreen title={l.lock}>
      <p>{l.lockText}</p>
      {isLocked() ? <Locked {...{ app, canPasskey }} /> : <NotLocked {...{ app, canPasskey }} />}
    </SubScreen>
  );
}

interface Props {
  readonly app: App;
  readonly canPasskey: boolean;
}

const passkeyName = (app: App) => `${text.app} ${shortId(app.account.id)}`;

function NotLocked({ app, canPasskey }: Props) {
  const [password, setPassword] = useState('');
  const [again, setAgain] = useState('');
  const [withPasskey, setWithPasskey] = useState(true);
  const { isBusy, run, report, setFault } = useWork();
  const lock = async () => {
    if ([...password].length < shortest) return setFault(text.passwordShort);
    if (password !== again) return setFault(text.passwordDiffers);
    const work = async () => {
      const { addPasskey, encryptStore, makeLock } = await loadCryptography();
      const { config } = app;
      const made = await makeLock(config, password);
      const { key } = made;
      const name = passkeyName(app);
      // Before anything is changed: the person may try again, or go on without it.
      const kept =
        canPasskey && withPasskey ? await addPasskey(config, made.lock, { key, name }) : made.lock;
      await app.endWith(async (say) => {
        const blocked = () => say(l.otherTabs);
        await encryptStore(kept, { key, blocked });
        key.fill(0);
        await forgetPlain(blocked);
      });
    };
    const isDone = await run(l.locking, () => alone(work), { words: lockFault });
    if (!isDone && canPasskey) setWithPasskey(false);
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void lock();
      }}
    >
      <p>{l.noReset}</p>
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
      <PasskeyChoice {...{ canPasskey, isChosen: withPasskey, onChoice: setWithPasskey }} />
      <button type="submit" disabled={isBusy}>
        {l.lock}
      </button>
      {report}
    </form>
  );
}

function Locked({ app, canPasskey }: Props) {
  const [password, setPassword] = useState('');
  const [lock, setLock] = useState(keptLock);
  const { isBusy, run, report } = useWork();
  if (lock === undefined) return <p class="fault">{l.damaged}</p>;
  const add = () => {
    const work = async () => {
      const { addPasskey, keepLock, openLock } = await loadCryptography();
      const key = await openLock(app.config, lock, password);
      const changed = await addPasskey(app.config, lock, { key, name: passkeyName(app) });
      key.fill(0);
      await keepLock(changed);
      await readLock();
      setLock(changed);
    };
    return run(l.opening, work, { words: lockFault, say: l.passkeyAdded });
  };
  const remove = () => {
    const work = async () => {
      const { decryptStore, openLock } = await loadCryptography();
      const key = await openLock(app.config, lock, password);
      await app.endWith(async (say) => {
        const blocked = () => say(l.otherTabs);
        await decryptStore({ key, blocked });
        key.fill(0);
        await deleteStore(lockedStore, blocked);
      });
    };
    return run(l.decrypting, () => alone(work), { words: lockFault });
  };
  return (
    <>
      <p>
        {l.locked} {lock.passkeys.length > 0 && l.hasPasskey}
      </p>
      <button type="button" onClick={() => location.reload()}>
        {l.lockNow}
      </button>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void remove();
        }}
      >
        <Field
          {...{ label: l.current, type: 'password', value: password, onValue: setPassword }}
          autoComplete="current-password"
          required
        />
        <div class="row">
          <button type="submit" class="plain" disabled={isBusy}>
            {l.unlockForGood}
          </button>
          {canPasskey && lock.passkeys.length === 0 && (
            <button
              type="button"
              class="plain"
              disabled={isBusy || password === ''}
              onClick={() => void add()}
            >
              {l.addPasskey}
            </button>
          )}
        </div>
        {report}
      </form>
    </>
  );
}
