/** The messenger: one page, whose account lives in a worker. */
import { render } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { loadCryptography, loadRooms } from './engine/load-part.ts';
import { scriptUrl } from './engine/script-urls.ts';
import { Fault } from './parts/fault.tsx';
import { listenForKeys } from './parts/keys.ts';
import { later } from './parts/later.tsx';
import { invite, opensShared, type Route, route, shared, show } from './router.ts';
import { Chat } from './screens/chat.tsx';
import { ConversationList } from './screens/conversation-list.tsx';
import { Welcome } from './screens/welcome.tsx';
import { App } from './state/app.ts';
import { ending } from './state/ending.ts';
import { notifyLevel } from './state/notify-mark.ts';
import { update, useUpdate, watchUpdates } from './state/updates.ts';
import { text } from './text/index.ts';

const AddPerson = later(async () => (await import('./screens/add-person.tsx')).AddPerson);
const Backup = later(async () => (await import('./screens/backup.tsx')).Backup);
const Ended = later(async () => (await import('./account/ended.tsx')).Ended);
const EndedNotice = later(async () => (await import('./account/ended.tsx')).EndedNotice, true);
const Person = later(async () => (await import('./screens/person.tsx')).Person);
const Unlock = later(async () => (await import('./account/unlock.tsx')).Unlock);
const GroupScreen = later(async () => (await loadRooms()).GroupScreen);
const NewGroup = later(async () => (await loadRooms()).NewGroup);
const ChannelScreen = later(async () => (await loadRooms()).ChannelScreen);
const NewChannel = later(async () => (await loadRooms()).NewChannel);
const PostScreen = later(async () => (await loadRooms()).PostScreen);
const Shared = later(async () => (await loadRooms()).SharedLinkScreen);
const ReadChannel = later(async () => (await loadRooms()).ReadAsVisitor);
const Settings = later(async () => (await import('./screens/settings.tsx')).Settings);

function Main({ app }: { readonly app: App }) {
  const phase = app.phase.value;
  switch (phase.kind) {
    case 'starting':
      return <p role="status">{phase.say ?? text.starting}</p>;
    case 'welcome':
      return shared.value?.kind === 'channel' && !app.wantsAccount.value ? (
        <ReadChannel app={app} />
      ) : (
        <Welcome app={app} />
      );
    case 'locked':
      return <Unlock app={app} />;
    case 'failed':
      return (
        <main class="welcome">
          <h1>{text.failed}</h1>
          <div role="alert">
            <Fault error={phase.error} />
          </div>
          <button type="button" onClick={() => location.reload()}>
            {text.reload}
          </button>
        </main>
      );
    case 'ready':
      return <Ready app={app} />;
  }
}

const chatOf = (shown: Route) => (shown.screen === 'chat' ? shown : undefined);

function Ready({ app }: { readonly app: App }) {
  const now = route.value;
  useEffect(() => {
    void app.open(chatOf(now));
  }, [now]);
  const isFirst = useRef(true);
  const noticed = useRef<unknown>('');
  useEffect(() => {
    // A notice outlives the change of the screen that it came with, and no other.
    if (app.notice.value === noticed.current) app.notice.value = '';
    noticed.current = app.notice.value;
  }, [now]);
  // A conversation is shown a moment after the change of the address.
  const shown = now.screen === 'chat' && app.opened.value?.id !== now.id ? undefined : now;
  useEffect(() => {
    if (shown === undefined) return;
    // Where a person reads on; nothing is taken away from who has just opened the page.
    const heading = shown.screen === 'list' ? '.pane h1' : 'main h1';
    const isSearching = document.activeElement?.matches('.pane input') && shown.screen === 'list';
    if (!isFirst.current && !isSearching) document.querySelector<HTMLElement>(heading)?.focus();
    isFirst.current = false;
  }, [shown]);
  const unread = app.unread.value;
  useEffect(() => {
    document.title = unread > 0 ? `(${unread}) ${app.config.name}` : app.config.name;
    // Of an installed app; refused where it is none.
    navigator.setAppBadge?.(unread).catch(() => undefined);
  }, [unread]);
  useEffect(() => {
    const start = async () => (await import('./account/notify.ts')).startNotifying(app);
    const begin = () => {
      if (notifyLevel() !== undefined) start().catch(() => undefined);
    };
    begin();
    // Another tab may have switched them on.
    addEventListener('storage', begin);
    return () => removeEventListener('storage', begin);
  }, []);
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
    case 'ended':
      return <Ended app={app} />;
    case 'group':
      return <GroupScreen key={now.id} app={app} id={now.id} />;
    case 'channel':
      return <ChannelScreen key={now.id} app={app} id={now.id} />;
    case 'post':
      return <PostScreen key={now.sequence} app={app} id={now.id} sequence={now.sequence} />;
    case 'new-group':
      return <NewGroup app={app} />;
    case 'new-channel':
      return <NewChannel app={app} />;
    case 'shared':
      return <Shared key={shared.value?.address} app={app} />;
    case 'list':
      return <p class="choose">{text.choose}</p>;
  }
}

/** What is to be said once, and an update that waits. */
function Notices({ app }: { readonly app: App }) {
  return (
    <>
      <div role="status" class={app.notice.value === '' ? 'hidden' : 'notice'}>
        <Fault error={app.notice.value} />
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
      </div>
      {ending.value !== '' && <EndedNotice />}
      {update.value !== '' && (
        <p role="status" class="notice">
          {update.value === 'used' ? text.newVersionLoses : text.newVersion}
          <button type="button" onClick={useUpdate}>
            {text.useNewVersion}
          </button>
        </p>
      )}
    </>
  );
}

listenForKeys();
document.documentElement.lang = text.language;
const app = new App({
  loadRooms,
  firstShown: () => chatOf(route.value),
  adoptLock: async (lock) => (await loadCryptography()).adoptLock(lock),
});
if (invite.value !== '') show({ screen: 'add' });
if (opensShared) show({ screen: 'shared' });
render(<Main app={app} />, document.getElementById('app') as HTMLElement);
void app.start();
watchUpdates(scriptUrl('serviceWorker'));
