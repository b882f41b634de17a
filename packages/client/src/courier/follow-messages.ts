/** Lists messages and goes on with those that arrive, without leaving one out or showing one twice. */
import type { AccountEvent } from '../events.ts';
import type { Message } from '../messages/message.ts';
import type { AccountSession } from './client-session.ts';
import { followEvents } from './follow-events.ts';

/** Messages that were listed, oldest first, and what following needs to go on after them. */
export interface ListedMessages {
  readonly shown: readonly Message[];
  readonly peer: string | undefined;
  /** Largest `order` that was stored before the list was read; -1 if there was none. */
  readonly through: number;
}

/** Messages read at once from the store. */
const batchSize = 100;

/** Lists the latest messages, of one conversation or of all. */
export async function listLatest(
  { account }: AccountSession,
  options: {
    readonly peer?: string | undefined;
    readonly after?: number | undefined;
    readonly limit: number;
  },
): Promise<ListedMessages> {
  const { peer, after, limit } = options;
  const scope = peer === undefined ? {} : { with: peer };
  const [newest] = await account.messages.list({ ...scope, limit: 1, newestFirst: true });
  const range = { limit, newestFirst: true, ...(after !== undefined && { after }) };
  const shown = (await account.messages.list({ ...scope, ...range })).reverse();
  const through = Math.max(newest?.order ?? -1, shown.at(-1)?.order ?? -1);
  return { shown, peer, through };
}

/**
 * Yields events as {@link followEvents}. Another program on the folder may finish events between the
 * list and the start of this reader: their messages come first, as events, and each message only once.
 */
export async function* followAfter(
  session: AccountSession,
  listed: ListedMessages,
): AsyncGenerator<AccountEvent> {
  const { account, signal } = session;
  const known = new Set(listed.shown.map(keyOf));
  let isBegun = false;
  for await (const event of followEvents(account, signal)) {
    // Listed after this reader began: whatever is not in the list yet comes as an event.
    if (!isBegun) {
      isBegun = true;
      for await (const message of messagesAfter(session, listed)) {
        if (known.has(keyOf(message))) continue;
        known.add(keyOf(message));
        if (message.fromDeviceId !== account.deviceId) yield { kind: 'message', message };
      }
    }
    if (event.kind === 'message' && known.delete(keyOf(event.message))) continue;
    yield event;
  }
}

async function* messagesAfter(
  { account }: AccountSession,
  { peer, through }: ListedMessages,
): AsyncGenerator<Message> {
  const scope = peer === undefined ? {} : { with: peer };
  for (let after = through; ; ) {
    const found = await account.messages.list({ ...scope, after, limit: batchSize });
    yield* found;
    if (found.length < batchSize) return;
    after = found.at(-1)?.order ?? after;
  }
}

const keyOf = ({ from, messageId }: Message) => `${from} ${messageId}`;
