/**
 * The event log: what happened on this store, numbered in the order of its commits, for any number
 * of readers. An event is recorded in the transaction that changes the state, so that a crash
 * separates neither from the other.
 */
import { ClientError } from '../errors.ts';
import type { AccountEvent } from '../events.ts';
import { Collection } from '../store/collection.ts';
import type { Store, StoreReader, StoreWriter } from '../store/index.ts';
import { positionKey } from '../store/row-keys.ts';
import { fromStoredEvent, type StoredEvent, toStoredEvent } from './stored-event.ts';

/** Events kept at most. A reader that missed some gets `events-missed`. */
export const capacity = 10_000;

/** Newest events that are kept although a reader has finished with them, for the other readers. */
export const finishedCapacity = 1_000;

/** Named readers of one store, and characters of a name. */
const mostReaders = 16;
const longestName = 64;

/** Rows removed in one transaction, in addition to as many as it adds. */
const removalBatch = 200;

const log = new Collection<StoredEvent>('events');
const marks = new Collection<StoredMarks>('event-marks');
const takenNumbers = new Collection<readonly number[]>('event-taken');
/** The last event about the connection, while some program follows. */
const connections = new Collection<LastConnection>('event-connection');

export type ConnectionEvent = Extract<AccountEvent, { readonly kind: 'connection' }>;

interface LastConnection {
  readonly number: number;
  readonly event: ConnectionEvent;
}

/** Numbers of events; the first event has number 1. */
export interface Marks {
  /** The newest event. */
  readonly head: number;
  /** The highest event that some reader has finished with: a new reader begins after it. */
  readonly finished: number;
  /** No event up to this one is stored. */
  readonly removed: number;
  /** The newest event after which other groups or channels are to be followed. */
  readonly hosted: number;
  /** The highest event that each named reader has finished with. */
  readonly readers: Map<string, number>;
}

/** Stores have another name of `finished`. */
interface StoredMarks extends Omit<Marks, 'finished' | 'readers'> {
  readonly told: number;
  readonly readers?: readonly (readonly [string, number])[];
}

const hostedKinds: ReadonlySet<AccountEvent['kind']> = new Set([
  'group-joined',
  'group-ended',
  'channel-followed',
]);

export async function eventMarks(tx: StoreReader): Promise<Marks> {
  const { told: finished = 0, readers, ...stored } = (await marks.get(tx, 'log')) ?? {};
  return { head: 0, removed: 0, hosted: 0, ...stored, finished, readers: new Map(readers) };
}

/** Appends events to the log, in the transaction that changes what they are about. */
export async function recordEvents(
  tx: StoreWriter,
  events: readonly AccountEvent[],
): Promise<void> {
  if (events.length === 0) return;
  const before = await eventMarks(tx);
  let { head, hosted } = before;
  for (const event of events) {
    head += 1;
    const stored = toStoredEvent(event);
    await log.put(tx, positionKey(head), stored);
    if (hostedKinds.has(event.kind)) hosted = head;
    if (stored.kind === 'connection') {
      await connections.put(tx, 'home', { number: head, event: stored });
    }
  }
  await putMarks(tx, { ...before, head, hosted }, removalBatch + events.length);
}

/** Records events that belong to no other change of the state, such as a lost connection. */
export async function recordPassing(
  { store }: { readonly store: Store },
  events: readonly AccountEvent[],
): Promise<void> {
  if (events.length > 0) await store.write((tx) => recordEvents(tx, events));
}

/** Returns the last event about the connection; `undefined` while no program follows. */
export async function lastConnection(tx: StoreReader): Promise<LastConnection | undefined> {
  return await connections.get(tx, 'home');
}

/** Stores that no program follows any more. */
export async function forgetConnection(tx: StoreWriter): Promise<void> {
  await connections.delete(tx, 'home');
}

/**
 * Stores that some reader has finished with all events up to this one, and each named reader with
 * those up to its own. A named reader that was forgotten meanwhile stays forgotten.
 */
export async function markFinished(
  tx: StoreWriter,
  number: number,
  named: Iterable<readonly [string, number]> = [],
): Promise<void> {
  const before = await eventMarks(tx);
  const { readers } = before;
  for (const [name, through] of named) {
    const known = readers.get(name);
    if (known !== undefined) readers.set(name, Math.max(known, through));
  }
  const finished = Math.max(before.finished, Math.min(number, before.head));
  await putMarks(tx, { ...before, finished }, removalBatch);
}

/**
 * Returns where a named reader begins: after the last event that it has finished with. A new one begins
 * as any other reader, and from then on what it has not finished with stays.
 *
 * @returns also the newest event
 * @throws ClientError `invalid_input`
 */
export async function beginReader(
  tx: StoreWriter,
  name: string,
): Promise<{ readonly cursor: number; readonly head: number }> {
  const before = await eventMarks(tx);
  const { head, finished, readers } = before;
  const cursor = readers.get(name) ?? finished;
  readers.set(name, cursor);
  if (readers.size > mostReaders || name.length > longestName) {
    throw new ClientError('invalid_input', 'too many readers, or a long name: see `forgetReader`');
  }
  await putMarks(tx, before, removalBatch);
  return { cursor, head };
}

/** Removes the mark of a named reader, if it has one. */
export async function forgetReader(tx: StoreWriter, name: string): Promise<void> {
  const before = await eventMarks(tx);
  if (before.readers.delete(name)) await putMarks(tx, before, removalBatch);
}

/**
 * Stores which events after the mark of finished ones are finished too: a reader of one group or
 * channel takes its events before earlier ones of others. They are few, or the oldest are forgotten
 * and come again.
 */
export async function markTaken(tx: StoreWriter, numbers: readonly number[]): Promise<void> {
  const { finished } = await eventMarks(tx);
  const before = (await takenNumbers.get(tx, 'log')) ?? [];
  const after = [...new Set([...before, ...numbers])]
    .filter((number) => number > finished)
    .sort((a, b) => a - b)
    .slice(-finishedCapacity);
  if (after.length > 0) await takenNumbers.put(tx, 'log', after);
  else if (before.length > 0) await takenNumbers.delete(tx, 'log');
}

/** Returns the events after the mark of finished ones that are finished too. */
export async function takenEvents(tx: StoreReader): Promise<ReadonlySet<number>> {
  return new Set(await takenNumbers.get(tx, 'log'));
}

/** Stores the marks and removes events that no reader needs, oldest first. */
async function putMarks(tx: StoreWriter, next: Marks, limit: number): Promise<void> {
  const { head, finished, readers, ...others } = next;
  const finishedByAll = Math.min(finished, ...readers.values());
  const needless = Math.max(Math.min(finishedByAll, head - finishedCapacity), head - capacity);
  const until = Math.min(needless, next.removed + limit);
  let { removed } = next;
  while (removed < until) {
    removed += 1;
    await log.delete(tx, positionKey(removed));
  }
  const named = readers.size > 0 && { readers: [...readers] };
  await marks.put(tx, 'log', { ...others, head, told: finished, removed, ...named });
}

/** A part of the log, oldest first. */
export interface LogPage {
  readonly events: readonly { readonly number: number; readonly event: AccountEvent }[];
  /** The last number that was read; events whose objects were removed are left out. */
  readonly through: number;
  readonly hasMore: boolean;
  /** Whether events after the requested number were removed before they could be read. */
  readonly isBehind: boolean;
}

/** Reads events after a number. */
export async function readEventsAfter(
  tx: StoreReader,
  after: number,
  limit: number,
): Promise<LogPage> {
  const { head, removed } = await eventMarks(tx);
  const from = Math.max(after, removed);
  const rows = await log.list(tx, { after: positionKey(from), limit });
  const events: { number: number; event: AccountEvent }[] = [];
  for (const { key, value } of rows) {
    const event = await fromStoredEvent(tx, value);
    if (event !== undefined) events.push({ number: Number(key), event });
  }
  const through = Math.max(from, Number(rows.at(-1)?.key ?? 0));
  return { events, through, hasMore: through < head, isBehind: removed > after };
}
