/** The messenger: one page, whose account lives in a worker. */
import { render } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { scriptUrl } from './engine/script-urls.ts';
import { later } from './parts/later.tsx';
import { invite, route, show } from './router.ts';
import { AddPerson } from './screens/add-person.tsx';
import { Chat } from './screens/chat.tsx';
import { ConversationList } from './screens/conversation-list.tsx';
import { Person } from './screens/person.tsx';
import { Welcome } from './screens/welcome.tsx';
import { App, messageOf } from './state/app.ts';
import { updateReady, useUpdate, watchUpdates } from './state/updates.ts';
import { text } from './text/index.ts';

const Backup = later(async () => (await import('./screens/backup.tsx')).Backup);
const Unlock = later(async () => (await import('./account/unlock.tsx')).Unlock);
const Settings = later(async () => (await import('./screens/settings.tsx')).Settings);

function Main({ app }: { readonly app: App }) {
  const phase = app.phase.value;
  switch (phase.kind) {
    case 'starting':
      return <p role="status">{text.starting}</p>;
    case 'welcome':
      return <Welcome app={app} />;
    case 'locked':
      return <Unlock app={app} />;
    case 'failed':
      return (
        <main class="welcome">
          <h1>{text.failed}</h1>
          <p role="alert">{messageOf(phase.error)}</p>
          <button type="button" onClick={() => location.reload()}>
            {text.reload}
          </button>
        </main>
      );
    case 'ready':
      return <Ready app={app} />;
  }
}

function Ready({ app }: { readonly app: App }) {
  const now = route.value;
  useEffect(() => {
    void app.open(now.screen === 'chat' ? now : undefined);
  }, [now]);
  const isFirst = useRef(true);
  useEffect(() => {
    // Where a person reads on; nothing is taken away from who has just opened the page.
    const heading = now.screen === 'list' ? '.pane h1' : 'main h1';
    if (!isFirst.current) document.querySelector<HTMLElement>(heading)?.focus();
    isFirst.current = false;
  }, [now]);
  const unread = app.unread.value;
  useEffect(() => {
    document.title = unread > 0 ? `(${unread}) ${app.config.name}` : app.config.name;
  }, [unread]);
  return (
    <div class="app" data-screen={now.screen}>
      <Notices app={app} />
      <ConversationList app={app} />
      <main>
        <Shown app={app} />
      </main>
    </div>
  );
}

function Shown({ app }: { readonly app: App }) {
  const now = route.value;
  switch (now.screen) {
    case 'chat': {
      const opened = app.opened.value;
      return opened === undefined ? null : <Chat key={opened.id} {...{ app, opened }} />;
    }
    case 'person':
      return <Person key={now.id} app={app} id={now.id} />;
    case 'add':
      return <AddPerson app={app} />;
    case 'settings':
      return <Settings key={now.page} {...{ app, page: now.page }} />;
    case 'backup':
      return <Backup app={app} />;
    case 'list':
      return null;
  }
}

/** What is to be said once, and an update that waits. */
function Notices({ app }: { readonly app: App }) {
  return (
    <>
      <p role="status" class={app.notice.value === '' ? 'hidden' : 'notice'}>
        {app.notice.value}
        {app.notice.value !== '' && (
          <button
            type="button"
            class="plain"
            aria-label={text.cancel}
            onClick={() => {
              app.notice.value = '';
            }}
          >
            ×
          </button>
        )}
      </p>
      {updateReady.value && (
        <p role="status" class="notice">
          {text.newVersion}
          <button type="button" onClick={useUpdate}>
            {text.useNewVersion}
          </button>
        </p>
      )}
    </>
  );
}

// Escape leads back to the list, from everywhere but a field in which it has a meaning of its own.
addEventListener('keydown', (event) => {
  const isOwn =
    event.defaultPrevented || event.isComposing || event.target instanceof HTMLInputElement;
  if (event.key === 'Escape' && !isOwn && route.value.screen !== 'list') {
    show({ screen: 'list' });
  }
});

document.documentElement.lang = text.language;
const app = new App();
if (invite.value !== '') show({ screen: 'add' });
render(<Main app={app} />, document.getElementById('app') as HTMLElement);
void app.start();
watchUpdates(scriptUrl('serviceWorker'));
