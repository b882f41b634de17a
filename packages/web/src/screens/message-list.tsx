import { visibleText } from '@posthouse/client/visible-text';
import { type ReadonlySignal, useComputed } from '@preact/signals';
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { Body } from '../parts/body.tsx';
import { Action } from '../parts/controls.tsx';
import { Fault } from '../parts/fault.tsx';
import { findShared } from '../parts/find-shared.ts';
import { later } from '../parts/later.tsx';
import { nameOf } from '../parts/names.ts';
import { Timeline } from '../parts/timeline.tsx';
import type { TimelineItem } from '../parts/timeline-item.ts';
import { openShared } from '../router.ts';
import type { App } from '../state/app.ts';
import { keyOf } from '../state/conversation-source.ts';
import type { Line, OpenConversation } from '../state/open-conversation.ts';
import { dayOf, isoOf, isSameDay, text, timeOf } from '../text/index.ts';

const Attached = later(async () => (await import('../attachments/index.ts')).Attached, true);

/** The messages of a conversation, the newest at the bottom. */
export function MessageList({
  app,
  opened,
}: {
  readonly app: App;
  readonly opened: OpenConversation;
}) {
  const messages = opened.messages.value;
  const items = useMemo(() => messages.map((message) => itemOf(app, message)), [messages]);
  // A signal of one text: a change of other contacts changes no line.
  const peer = useComputed(() => nameOf(app, opened.id));
  const drawn = useMemo(() => new WeakMap<Line, VNode>(), [app, opened]);
  /** Returns the same element for the same line, which is not rendered again then. */
  const lineFor = (message: Line) => {
    const before = drawn.get(message);
    if (before !== undefined) return before;
    const made = <MessageLine key={keyOf(message)} {...{ app, opened, peer, message }} />;
    drawn.set(message, made);
    return made;
  };
  return (
    <Timeline
      label={text.messages}
      items={items}
      isRead={opened.isRead.value}
      onSeen={() => void app.try(() => opened.markRead())}
      onAtEnd={(isAtEnd) => {
        opened.isReadingBack = !isAtEnd;
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
      {messages.flatMap((message, index) => {
        const before = messages[index - 1];
        const isNewDay = before === undefined || !isSameDay(before.createdAt, message.createdAt);
        return [
          isNewDay && (
            <li key={`day/${message.order}`} class="day">
              {dayOf(message.createdAt)}
            </li>
          ),
          lineFor(message),
        ];
      })}
    </Timeline>
  );
}

/** Characters of an arriving message that are announced. */
const announcedLength = 100;

function itemOf(app: App, { from, order, body, sender, note }: Line): TimelineItem {
  return {
    order,
    // What happened between messages is neither counted nor announced.
    isOwn: from === app.account.id || note !== undefined,
    announcement: () =>
      `${sender ?? nameOf(app, from)}: ${visibleText(body?.text.slice(0, announcedLength) ?? text.attachment)}`,
  };
}

function MessageLine({
  app,
  opened,
  peer,
  message,
}: {
  readonly app: App;
  readonly opened: OpenConversation;
  /** Name of the other person of a conversation of two. */
  readonly peer: ReadonlySignal<string>;
  readonly message: Line;
}) {
  const { from, body, attachments, quote, createdAt, status, error, sender } = message;
  const { canReply, more } = opened.source;
  const link = useMemo(() => findShared(body?.text ?? ''), [body?.text]);
  if (message.note !== undefined) return <NoteLine line={message} />;
  const isOwn = from === app.account.id;
  const isFinalFailure = status === 'rejected' || status === 'failed';
  return (
    <li class={isOwn ? 'own' : 'theirs'} data-order={message.order}>
      <article aria-label={`${isOwn ? text.you : (sender ?? peer.value)}, ${timeOf(createdAt)}`}>
        {sender !== undefined && !isOwn && (
          <p class="sender" dir="auto">
            {sender}
          </p>
        )}
        {quote !== undefined && (
          <blockquote class="answered" dir="auto">
            {visibleText(quote.slice(0, 200))}
          </blockquote>
        )}
        {body && <Body body={body} />}
        {attachments && <Attached {...{ app, attachments }} />}
        {link && (
          <button type="button" onClick={() => openShared(link)}>
            {text.openLink[link.kind]}
          </button>
        )}
        <footer>
          <time dateTime={isoOf(createdAt)}>{timeOf(createdAt)}</time>
          {isOwn && status !== undefined && <span class="status">{text.status[status]}</span>}
          {message.mark !== undefined && <span class="status">{message.mark}</span>}
          {canReply && (
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
          )}
          {more !== undefined && status === undefined && (
            <button type="button" class="plain" onClick={() => more(message)}>
              {text.more}
            </button>
          )}
          {isFinalFailure && (body ?? attachments) && (
            <Action plain work={() => app.try(() => opened.postAgain(message))}>
              {text.retry}
            </Action>
          )}
          {(status === 'waiting' || isFinalFailure) && (
            <Action plain work={() => app.try(() => opened.cancel(message))}>
              {isFinalFailure ? text.remove : text.cancel}
            </Action>
          )}
        </footer>
        {isFinalFailure && (
          <div class="fault">
            {text.notSent} <Fault error={error} />
          </div>
        )}
      </article>
    </li>
  );
}

/** What happened between the messages, such as a new member, or why one cannot be read. */
function NoteLine({ line: { note, details, order } }: { readonly line: Line }) {
  return (
    <li class="note" dir="auto" data-order={order}>
      {note}
      {details !== undefined && (
        <details>
          <summary>{text.details}</summary>
          {details}
        </details>
      )}
    </li>
  );
}
