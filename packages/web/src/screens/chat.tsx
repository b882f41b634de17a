import type { Conversation } from '@posthouse/client';
import { useEffect, useState } from 'preact/hooks';
import { titleOf } from '../parts/names.ts';
import { show } from '../router.ts';
import type { App } from '../state/app.ts';
import type { OpenConversation } from '../state/open-conversation.ts';
import { text } from '../text/index.ts';
import { Composer } from './composer.tsx';
import { MessageList } from './message-list.tsx';

/** One conversation: its messages, the newest at the bottom, and a place to write. */
export function Chat({ app, opened }: { readonly app: App; readonly opened: OpenConversation }) {
  const { kind, id } = opened;
  const { Status } = opened.source;
  const listed = app.conversations.value.find((each) => each.kind === kind && each.id === id);
  const [found, setFound] = useState<Conversation | undefined>();
  const isListed = listed !== undefined;
  useEffect(() => {
    // The list ends before it, or nothing was written yet.
    const find = async () => setFound(await app.account.conversations.get({ kind, id }));
    if (!isListed && kind !== 'person') void app.try(find);
  }, [isListed]);
  const title = titleOf(app, listed ?? found ?? { kind, id });
  return (
    <section class="chat" aria-label={title}>
      <header>
        <button type="button" class="back plain" onClick={() => show({ screen: 'list' })}>
          {text.back}
        </button>
        <h1 dir="auto" tabIndex={-1}>
          {title}
        </h1>
        {id !== app.account.id && (
          <button type="button" class="plain" onClick={() => show({ screen: kind, id })}>
            {text.kinds[kind]}
          </button>
        )}
      </header>
      <MessageList {...{ app, opened }} />
      {Status && <Status />}
      <Composer {...{ app, opened }} />
    </section>
  );
}
