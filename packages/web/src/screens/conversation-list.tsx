import { visibleText } from '@posthouse/client/visible-text';
import { useState } from 'preact/hooks';
import { Action, Field } from '../parts/controls.tsx';
import { nameOf, titleOf } from '../parts/names.ts';
import { route, show } from '../router.ts';
import type { App, Contact, Conversation } from '../state/app.ts';
import { briefTimeOf, text } from '../text/index.ts';

/** Requests, then conversations; the newest first. */
export function ConversationList({ app }: { readonly app: App }) {
  const [query, setQuery] = useState('');
  const search = (wanted: string) => {
    setQuery(wanted);
    if (wanted !== '') void app.listAll();
  };
  const requests = app.requests.value;
  const Waiting = app.rooms.value?.Waiting;
  const wanted = query.trim().toLowerCase();
  const found = app.conversations.value.filter((each) =>
    titleOf(app, each).toLowerCase().includes(wanted),
  );
  const listed = new Set(found.map(({ id }) => id));
  // Contacts to whom nothing was written yet, and the own notes.
  const others = [
    ...(wanted === '' ? [app.account.id] : []),
    ...app.contacts.value.filter(({ status }) => status === 'active').map(({ account }) => account),
  ].filter(
    (id) =>
      !listed.has(id) &&
      nameOf(app, id).toLowerCase().includes(wanted) &&
      !app.conversations.value.some((each) => each.id === id),
  );
  return (
    <nav
      class="pane"
      aria-label={text.conversations}
      onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
        if (scrollTop + clientHeight > scrollHeight - 200) void app.listMore();
      }}
    >
      <header>
        <h1 tabIndex={-1}>{app.config.name}</h1>
        {app.connection.value === 'connecting' && (
          <span class="hint" aria-hidden="true">
            {text.connecting}
          </span>
        )}
        <button type="button" class="plain" onClick={() => show({ screen: 'settings' })}>
          {text.settings}
        </button>
      </header>
      <Connection app={app} />
      {!app.hasBackup.value && (
        <p class="banner">
          {text.noBackup}{' '}
          <button type="button" class="plain" onClick={() => show({ screen: 'backup' })}>
            {text.backup}
          </button>
        </p>
      )}
      <Field {...{ label: text.search, value: query, onValue: search, type: 'search' }} />
      {requests.length > 0 && (
        <section aria-label={text.requests}>
          <h2>{text.requests}</h2>
          <ul>
            {requests.map((request) => (
              <Request key={request.account} {...{ app, request }} />
            ))}
          </ul>
        </section>
      )}
      {Waiting && <Waiting />}
      <ul class="conversations">
        {found.map((conversation) => (
          <Entry key={`${conversation.kind}/${conversation.id}`} {...{ app, conversation }} />
        ))}
        {others.map((id) => (
          <Entry key={id} app={app} conversation={emptyConversation(id)} />
        ))}
      </ul>
      {found.length + others.length === 0 && <p>{text.nothingFound}</p>}
      {app.contacts.value.length + found.length === 0 && <p class="hint">{text.none}</p>}
      <footer class="row">
        <button type="button" onClick={() => show({ screen: 'add' })}>
          {text.add}
        </button>
        <button type="button" class="plain" onClick={() => show({ screen: 'new-group' })}>
          {text.newGroup}
        </button>
        <button type="button" class="plain" onClick={() => show({ screen: 'new-channel' })}>
          {text.newChannel}
        </button>
      </footer>
    </nav>
  );
}

const emptyConversation = (id: string): Conversation => ({
  ...{ kind: 'person', id, unread: 0, waiting: 0, place: '' },
});

/** Moves the list only while there is no connection: a click of who has just opened the page must not meet another entry. */
function Connection({ app }: { readonly app: App }) {
  const state = app.connection.value;
  return (
    <p role="status" class={state === 'disconnected' ? 'banner' : 'hidden'}>
      {state === 'disconnected' && text.offline}
      {state === 'connecting' && text.connecting}
      {state === 'connected' && text.connected}
    </p>
  );
}

function Request({ app, request }: { readonly app: App; readonly request: Contact }) {
  const { account, note = '' } = request;
  // Not the note: everyone may write a friend's name there.
  const [name, setName] = useState('');
  const decide =
    (work: () => Promise<unknown>, isAccepting = false) =>
    async () => {
      const isDone = await app.try(work);
      await app.changed();
      // Another tab may have decided the same, of which this one gets no event.
      const status = app.contacts.value.find((each) => each.account === account)?.status;
      const isSame = isAccepting ? status === 'active' : status !== 'active' && status !== 'asks';
      if (!isDone && isSame) app.notice.value = '';
    };
  const accept = async () => {
    if (name.trim() !== '') await app.account.contacts.rename(account, name.trim());
    await app.account.contacts.approve(account);
  };
  return (
    <li class="request">
      <p>
        <strong dir="auto">{nameOf(app, account)}</strong> {text.asks}
      </p>
      {note !== '' && (
        <p class="plain" dir="auto">
          {visibleText(note)}
        </p>
      )}
      <Field {...{ label: text.localName, value: name, onValue: setName }} />
      <div class="row">
        <Action work={decide(accept, true)}>{text.accept}</Action>
        <Action plain work={decide(() => app.account.contacts.reject(account))}>
          {text.decline}
        </Action>
        <Action plain work={decide(() => app.account.contacts.block(account))}>
          {text.block}
        </Action>
      </div>
    </li>
  );
}

function Entry({ app, conversation }: { readonly app: App; readonly conversation: Conversation }) {
  const { kind, id, lastMessage, unread, waiting } = conversation;
  const now = route.value;
  const isOpen = now.screen === 'chat' && now.kind === kind && now.id === id;
  const at =
    lastMessage && ('createdAt' in lastMessage ? lastMessage.createdAt : lastMessage.acceptedAt);
  return (
    <li>
      <button
        type="button"
        class="entry"
        aria-current={isOpen}
        onClick={() => show({ screen: 'chat', kind, id })}
      >
        <span class="title">
          <bdi>{titleOf(app, conversation)}</bdi>
          {kind !== 'person' && <span class="kind"> {text.kinds[kind]}</span>}
        </span>
        {at !== undefined && <time>{briefTimeOf(at)}</time>}
        <span class="last" dir="auto">
          {lastLine(app, conversation)}
        </span>
        {unread > 0 && (
          <span class="count">
            <span aria-hidden="true">{unread}</span>
            <span class="hidden">{text.unread(unread)}</span>
          </span>
        )}
        {waiting > 0 && <span class="waits">{text.waiting(waiting)}</span>}
      </button>
    </li>
  );
}

/** The beginning of the last message; in a group with the name of who wrote it. */
function lastLine(app: App, { kind, lastMessage }: Conversation): string {
  if (lastMessage === undefined || app.blocked.value.has(lastMessage.from)) return '';
  const { body, attachments, from } = lastMessage;
  const said = body === undefined ? '' : visibleText(body.text.slice(0, 200)).replaceAll('\n', ' ');
  const line = said === '' && attachments !== undefined ? text.attachment : said;
  return kind === 'group' ? `${nameOf(app, from)}: ${line}` : line;
}
