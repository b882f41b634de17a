import { readEventsAfter } from '../../src/events/event-log.ts';
import type { AccountEvent, Store } from '../../src/index.ts';

type StatusEvent = Extract<AccountEvent, { readonly kind: 'message-status' }>;

/** Lists every status that a store's log holds, in order, whichever reader has read it. */
export async function statusLog(store: Store): Promise<StatusEvent[]> {
  const { events } = await store.read((tx) => readEventsAfter(tx, 0, 20_000));
  return events.flatMap(({ event }) => (event.kind === 'message-status' ? [event] : []));
}

/** Lists the statuses of one message, in order. */
export async function statusesOf(store: Store, messageId: string): Promise<string[]> {
  const found = await statusLog(store);
  return found.filter((event) => event.messageId === messageId).map(({ status }) => status);
}
