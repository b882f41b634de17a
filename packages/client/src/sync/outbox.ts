/** Outboxes of groups and channels: what was made here and has no answer yet, in order. */
import { ClientError, withKept } from '../errors.ts';
import { Collection } from '../store/collection.ts';
import type { Store, StoreReader, StoreWriter } from '../store/index.ts';
import { keyOf } from '../store/row-keys.ts';

/** A row of an outbox, with its key. */
export interface Pending<T> {
  readonly key: string;
  readonly value: T;
}

/** The next number, by outbox: a number whose row has gone is not used again. */
const places = new Collection<number>('outbox-places');

/** Appends a value to a conversation of an outbox. @returns its key, which no other row ever has */
export async function enqueue<T>(
  tx: StoreWriter,
  outbox: Collection<T>,
  { id, value }: { readonly id: string; readonly value: T },
): Promise<string> {
  const prefix = `${id}/`;
  const [last] = await outbox.list(tx, { prefix, limit: 1, reverse: true });
  // Earlier versions had no counter, or one for each conversation.
  const free = last === undefined ? 0 : Number(last.key.slice(prefix.length)) + 1;
  const former = keyOf(outbox.name, id);
  const counted = await places.get(tx, former);
  if (counted !== undefined) await places.delete(tx, former);
  const next = Math.max(free, counted ?? 0, (await places.get(tx, outbox.name)) ?? 0);
  await places.put(tx, outbox.name, next + 1);
  const key = keyOf(id, next);
  await outbox.put(tx, key, value);
  return key;
}

/** Lists what waits for a group or channel, oldest first. */
export async function pendingOf<T>(
  tx: StoreReader,
  outbox: Collection<T>,
  id: string,
): Promise<Pending<T>[]> {
  return await outbox.list(tx, { prefix: `${id}/` });
}

/** Runs the sending of something stored; an error says whether it is still kept, to be sent later. */
export async function whileKept<T>(
  store: Store,
  isKept: (tx: StoreReader) => Promise<boolean>,
  send: () => Promise<T>,
): Promise<T> {
  try {
    return await send();
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    // A client that was closed cannot read; only an answer ends what is stored.
    throw withKept(error, await store.read(isKept).catch(() => true));
  }
}
