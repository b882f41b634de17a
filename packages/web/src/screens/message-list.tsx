import type { Message } from '@posthouse/client';
import { visibleText } from '@posthouse/client/visible-text';
import { useMemo } from 'preact/hooks';
import { Body } from '../parts/body.tsx';
import { Action } from '../parts/controls.tsx';
import { later } from '../parts/later.tsx';
import { nameOf } from '../parts/names.ts';
import { Timeline } from '../parts/timeline.tsx';
import type { TimelineItem } from '../parts/timeline-item.ts';
import type { App } from '../state/app.ts';
import type { OpenConversation } from '../state/open-conversation.ts';
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
          <MessageLine
            key={`${message.from}/${message.messageId}`}
            {...{ app, opened, message }}
          />,
        ];
      })}
    </Timeline>
  );
}

/** Characters of an arriving message that are announced. */
const announcedLength = 100;

function itemOf(app: App, { from, order, body }: Message): TimelineItem {
  return {
    order,
    isOwn: from === app.account.id,
    announcement: () =>
      `${nameOf(app, from)}: ${visibleText(body?.text.slice(0, announcedLength) ?? text.attachment)}`,
  };
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
    <li class={isOwn ? 'own' : 'theirs'} data-order={message.order}>
      <article aria-label={`${nameOf(app, from)}, ${timeOf(createdAt)}`}>
        {answered?.body && (
          <blockquote class="answered" dir="auto">
            {visibleText(answered.body.text.slice(0, 200))}
          </blockquote>
        )}
        {body && <Body body={body} />}
        {attachments && <Attached {...{ app, attachments }} />}
        <footer>
          <time dateTime={isoOf(createdAt)}>{timeOf(createdAt)}</time>
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
          {isFinalFailure && (body ?? attachments) && (
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
