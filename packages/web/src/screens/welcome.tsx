import { isRefusal } from '@posthouse/client/web';
import type { WalletError } from '@posthouse/protocol';
import { useState } from 'preact/hooks';
import { loadCryptography } from '../engine/load-part.ts';
import { Field } from '../parts/controls.tsx';
import { later } from '../parts/later.tsx';
import { joinKey } from '../router.ts';
import { type App, messageOf } from '../state/app.ts';
import { text } from '../text/index.ts';

const Join = later(async () => (await import('../account/join.tsx')).Join, true);

/** The first screen: a new account, or one that is on another device or in a backup. */
export function Welcome({ app }: { readonly app: App }) {
  const [code, setCode] = useState('');
  const [password, setPassword] = useState('');
  const [file, setFile] = useState<File | undefined>();
  const [doing, setDoing] = useState('');
  const [fault, setFault] = useState('');
  const [isJoining, setJoining] = useState(joinKey.value !== '');
  const { name, needsInvite } = app.config;

  const run = async (what: string, work: () => Promise<void>) => {
    setFault('');
    setDoing(what);
    try {
      await work();
    } catch (error) {
      setFault(faultText(error));
    } finally {
      setDoing('');
    }
  };
  const create = () => run(text.creating, () => app.setUp(code.trim()));
  const restore = () =>
    run(text.restoring, async () => {
      if (file === undefined) return;
      const { openBackup } = await loadCryptography();
      const key = await openBackup(app.config, file, password);
      await app.setUp(code.trim(), key);
      app.backedUp();
    });

  if (isJoining || joinKey.value !== '') {
    return (
      <main class="welcome">
        <h1>{text.welcome(name)}</h1>
        <Join app={app} onEnd={() => setJoining(false)} />
      </main>
    );
  }
  return (
    <main class="welcome">
      <h1>{text.welcome(name)}</h1>
      <p>{text.welcomeText}</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void create();
        }}
      >
        {needsInvite && (
          <Field
            {...{
              label: text.inviteCode,
              help: text.inviteCodeHelp,
              value: code,
              onValue: setCode,
            }}
          />
        )}
        <button type="submit" disabled={doing !== ''}>
          {text.newAccount}
        </button>
      </form>
      <p>
        <button type="button" class="plain" onClick={() => setJoining(true)}>
          {text.join}
        </button>
      </p>
      <details>
        <summary>{text.restore}</summary>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void restore();
          }}
        >
          <p class="field">
            <label for="backup-file">{text.backupFile}</label>
            <input
              id="backup-file"
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
          <button type="submit" disabled={doing !== ''}>
            {text.openBackup}
          </button>
        </form>
      </details>
      <p role="status">{doing}</p>
      <p role="alert" class="fault">
        {fault}
      </p>
    </main>
  );
}

function faultText(error: unknown): string {
  const { fault } = error as Partial<WalletError>;
  if (fault !== undefined) return fault === 'password' ? text.wrongPassword : text.notABackup;
  return isRefusal(error) ? error.message : messageOf(error);
}
