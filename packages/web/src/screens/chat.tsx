import type { Message } from '@posthouse/client';
import { visibleText } from '@posthouse/client/visible-text';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { Body } from '../parts/body.tsx';
import { Action } from '../parts/controls.tsx';
import { nameOf, titleOf } from '../parts/names.ts';
import { show } from '../router.ts';
import type { App } from '../state/app.ts';
import type { OpenConversation } from '../state/open-conversation.ts';
import { dayOf, isSameDay, text, timeOf } from '../text/index.ts';

/** One conversation: its messages, the newest at the bottom, and a place to write. */
export function Chat({ app, opened }: { readonly app: App; readonly opened: OpenConversation }) {
  const listed = app.conversations.value.find(
    ({ kind, id }) => kind === 'person' && id === opened.id,
  );
  const title = listed === undefined ? nameOf(app, opened.id) : titleOf(app, listed);
  return (
    <section class="chat" aria-label={title}>
      <header>
        <button type="button" class="back plain" onClick={() => show({ screen: 'list' })}>
          {text.back}
        </button>
        <h1 dir="auto" tabIndex={-1}>
          {title}
        </h1>
        {opened.id !== app.account.id && (
          <button
            type="button"
            class="plain"
            onClick={() => show({ screen: 'person', id: opened.id })}
          >
            {text.person}
          </button>
        )}
      </header>
      <Messages {...{ app, opened }} />
      <Composer {...{ app, opened }} />
    </section>
  );
}

function Messages({ app, opened }: { readonly app: App; readonly opened: OpenConversation }) {
  const list = useRef<HTMLOListElement>(null);
  /** Distance from the end before the messages changed, so that what is read stays where it is. */
  const fromEnd = useRef(0);
  const messages = opened.messages.value;
  useLayoutEffect(() => {
    const { current } = list;
    if (current !== null) current.scrollTop = current.scrollHeight - fromEnd.current;
  }, [messages]);
  const last = messages.at(-1);
  useEffect(() => {
    if (last === undefined || document.visibilityState !== 'visible') return;
    void app.try(() => opened.markRead());
  }, [last?.order]);
  return (
    <ol
      ref={list}
      class="messages"
      aria-live="polite"
      aria-label={text.messages}
      onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
        const isAtEnd = scrollTop + clientHeight > scrollHeight - 40;
        fromEnd.current = isAtEnd ? 0 : scrollHeight - scrollTop;
      }}
    >
      {opened.hasOlder.value && (
        <li class="older">
          <Action plain work={() => app.try(() => opened.showOlder())}>
            {text.older}
          </Action>
        </li>
      )}
      {messages.length === 0 && opened.isRead.value && <li class="empty">{text.noMessages}</li>}
      {messages.map((message, index) => {
        const before = messages[index - 1];
        const isNewDay = before === undefined || !isSameDay(before.createdAt, message.createdAt);
        return [
          isNewDay && (
            <li key={`day/${message.order}`} class="day">
              {dayOf(message.createdAt)}
            </li>
          ),
          <MessageLine
            key={`${message.from}/${message.messageId}`}
            {...{ app, opened, message }}
          />,
        ];
      })}
    </ol>
  );
}

function MessageLine({
  app,
  opened,
  message,
}: {
  readonly app: App;
  readonly opened: OpenConversation;
  readonly message: Message;
}) {
  const { from, body, attachments, replyTo, createdAt, status, error } = message;
  const isOwn = from === app.account.id;
  const answered =
    replyTo &&
    opened.messages.value.find(
      (other) => other.from === replyTo.from && other.messageId === replyTo.messageId,
    );
  const isFinalFailure = status === 'rejected' || status === 'failed';
  return (
    <li class={isOwn ? 'own' : 'theirs'}>
      <article aria-label={`${nameOf(app, from)}, ${timeOf(createdAt)}`}>
        {answered?.body && (
          <blockquote class="answered" dir="auto">
            {visibleText(answered.body.text.slice(0, 200))}
          </blockquote>
        )}
        {body && <Body body={body} />}
        {attachments?.map((_, index) => (
          <p key={index} class="attachment">
            {text.attachment}
          </p>
        ))}
        <footer>
          <time dateTime={new Date(createdAt * 1_000).toISOString()}>{timeOf(createdAt)}</time>
          {isOwn && status !== undefined && <span class="status">{text.status[status]}</span>}
          <button
            type="button"
            class="plain"
            onClick={() => {
              opened.replyTo.value = message;
              document.querySelector<HTMLTextAreaElement>('.composer textarea')?.focus();
            }}
          >
            {text.reply}
          </button>
          {isFinalFailure && body && (
            <Action plain work={() => app.try(() => opened.postAgain(message))}>
              {text.retry}
            </Action>
          )}
          {status === 'waiting' && (
            <Action plain work={() => app.try(() => opened.cancel(message))}>
              {text.cancel}
            </Action>
          )}
        </footer>
        {isFinalFailure && <p class="fault">{text.failedText(error?.message ?? '')}</p>}
      </article>
    </li>
  );
}

function Composer({ app, opened }: { readonly app: App; readonly opened: OpenConversation }) {
  const contact = app.contacts.value.find(({ account }) => account === opened.id);
  const mayWrite = opened.id === app.account.id || contact?.status === 'active';
  const answered = opened.replyTo.value;
  if (!mayWrite) {
    return (
      <p class="composer">{contact?.status === 'waiting' ? text.requestSent : text.notContact}</p>
    );
  }
  const post = () => app.try(() => opened.post());
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void post();
      }}
    >
      {answered && (
        <p class="answering">
          {text.replyingTo} {nameOf(app, answered.from)}
          <button
            type="button"
            class="plain"
            onClick={() => {
              opened.replyTo.value = undefined;
            }}
          >
            {text.cancel}
          </button>
        </p>
      )}
      <textarea
        aria-label={text.write}
        placeholder={text.write}
        dir="auto"
        rows={Math.min(8, opened.draft.value.split('\n').length)}
        value={opened.draft.value}
        onInput={({ currentTarget }) => opened.write(currentTarget.value)}
        onKeyDown={(event) => {
          // Enter sends, as people expect of a messenger; an input method may need it for itself.
          // Some browsers say 229 of the Enter that ends a composition.
          const isComposing = event.isComposing || event.keyCode === 229;
          if (event.key !== 'Enter' || event.shiftKey || isComposing) return;
          event.preventDefault();
          if (event.repeat) return;
          void post();
        }}
      />
      <button type="submit">{text.send}</button>
    </form>
  );
}
