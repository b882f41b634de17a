/** The operator's page of a relay: what the verbs of the admin interface show and change (decision 0041). */
import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { notice, question, sentenceOf } from './notice.ts';
import { Field, Notice, Question } from './parts.tsx';
import { toBlock, view, views } from './route.ts';
import { ending, isSignedIn, signIn, signOut } from './session.ts';
import { Accounts } from './views/accounts.tsx';
import { Blocks } from './views/blocks.tsx';
import { Channels } from './views/channels.tsx';
import { Groups } from './views/groups.tsx';
import { Invites } from './views/invites.tsx';
import { Relays } from './views/relays.tsx';
import { Reports } from './views/reports.tsx';
import { Usage } from './views/usage.tsx';

const shown = {
  usage: Usage,
  accounts: Accounts,
  groups: Groups,
  channels: Channels,
  reports: Reports,
  blocks: Blocks,
  invites: Invites,
  relays: Relays,
} as const;

function Page() {
  const isIn = isSignedIn.value;
  const name = view.value;
  useEffect(() => {
    document.title = isIn ? `${views[name]} – Relay administration` : 'Relay administration';
  }, [isIn, name]);
  useEffect(() => {
    // Nothing of a session is there in the next.
    question.value?.answer(false);
    notice.value = undefined;
    toBlock.value = undefined;
  }, [isIn]);
  if (!isIn) return <SignIn />;
  const View = shown[name];
  return (
    <>
      <header>
        <a class="skip" href={`#/${name}`} onClick={skip}>
          Skip to the content
        </a>
        <strong>Relay administration</strong>
        <button type="button" class="plain" onClick={() => signOut()}>
          Sign out
        </button>
      </header>
      <nav aria-label="Views">
        <ul>
          {Object.entries(views).map(([each, title]) => (
            <li key={each}>
              <a href={`#/${each}`} aria-current={each === name ? 'page' : undefined}>
                {title}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <main>
        <Notice />
        <View key={name} />
      </main>
      <footer class="soft">Times are in this browser’s time zone.</footer>
      <Question />
    </>
  );
}

function skip(event: Event): void {
  event.preventDefault();
  document.querySelector('h1')?.focus();
}

function SignIn() {
  const [token, setToken] = useState('');
  const [fault, setFault] = useState('');
  const [isBusy, setBusy] = useState(false);
  const enter = async () => {
    setBusy(true);
    setFault('');
    try {
      await signIn(token);
    } catch (error) {
      setFault(sentenceOf(error));
    }
    setToken('');
    setBusy(false);
  };
  return (
    <main class="sign-in">
      <h1>Relay administration</h1>
      {ending.value !== '' && <p role="status">{ending.value}</p>}
      {canSign ? (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void enter();
          }}
        >
          <Field
            label="Token"
            type="password"
            help="The content of admin.token in the relay’s data folder."
            value={token}
            onValue={setToken}
            required
          />
          <p class="fault" role="alert">
            {fault}
          </p>
          <button type="submit" class="main" disabled={isBusy}>
            Sign in
          </button>
          <p class="soft">
            The token stays in this page and is not sent. It is forgotten when you sign out, reload
            or close the page, and after 15 minutes without use.
          </p>
        </form>
      ) : (
        <p class="fault" role="alert">
          A browser lets this page work only over https, or at 127.0.0.1 or localhost. Open it under
          such an address, through ssh -L for example.
        </p>
      )}
    </main>
  );
}

const canSign = globalThis.isSecureContext && crypto.subtle !== undefined;

render(<Page />, document.getElementById('app') as HTMLElement);
