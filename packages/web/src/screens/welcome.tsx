import { useState } from 'preact/hooks';
import { Field } from '../parts/controls.tsx';
import { Fault } from '../parts/fault.tsx';
import { later } from '../parts/later.tsx';
import { joinKey } from '../router.ts';
import type { App } from '../state/app.ts';
import { text } from '../text/index.ts';

const Begun = later(async () => (await import('../account/begun.tsx')).Begun, true);
const Join = later(async () => (await import('../account/join.tsx')).Join, true);
const Restore = later(async () => (await import('../account/restore.tsx')).Restore, true);

/** The first screen: a new account, or one that is on another device or in a backup. */
export function Welcome({ app }: { readonly app: App }) {
  const [code, setCode] = useState('');
  const [isCreating, setCreating] = useState(false);
  const [fault, setFault] = useState<unknown>('');
  const [isJoining, setJoining] = useState(joinKey.value !== '');
  const { name, needsInvite } = app.config;

  const create = async () => {
    setFault('');
    setCreating(true);
    try {
      await app.setUp({ inviteCode: code.trim() });
    } catch (error) {
      setFault(error);
    } finally {
      setCreating(false);
    }
  };

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
      <Begun app={app} code={code.trim()} />
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
        <button type="submit" disabled={isCreating}>
          {text.newAccount}
        </button>
      </form>
      <p role="status">{isCreating ? text.creating : ''}</p>
      <div role="alert" class="fault">
        <Fault error={fault} />
      </div>
      <p>
        <button type="button" class="plain" onClick={() => setJoining(true)}>
          {text.join}
        </button>
      </p>
      <details>
        <summary>{text.restore}</summary>
        <Restore app={app} code={code.trim()} />
      </details>
    </main>
  );
}
