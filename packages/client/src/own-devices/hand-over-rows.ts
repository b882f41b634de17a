/** Stored hand-overs of messages to other own devices. */
import { Collection } from '../store/collection.ts';
import type { StoreReader } from '../store/index.ts';

/** A hand-over that is not complete, by the ID of the device that gets the messages. */
export interface HandOverRow {
  readonly device: string;
  /** Indexes of messages, by the prefixes of their keys, read one after another. */
  readonly sources: readonly string[];
  /** Unix seconds: only messages that a relay accepted then or later. */
  readonly since?: number;
  /** Whether it leaves conversations or earlier messages out. */
  readonly isPart?: true;
  /** The index that is being read, and the key before which reading goes on. */
  readonly at: { readonly source: number; readonly before?: string };
  readonly sent: number;
  readonly skipped: number;
  /** Messages in the indexes, of which some may be left out. */
  readonly total: number;
}
export const handOvers = new Collection<HandOverRow>('hand-overs');

/** What this device handed over on a day: key `own`. */
export interface HandOverDay {
  /** Days since 1970 (UTC), by the relay's clock. */
  readonly day: number;
  /** Bytes of calls. */
  readonly bytes: number;
  /** Bytes of a day from which on the next one is waited for. */
  readonly most: number;
}
export const handOverDays = new Collection<HandOverDay>('hand-over-day');

/** Unix seconds at which the last hand-over of everything to a device was complete, by device ID. */
export const handedOver = new Collection<number>('handed-over');

/** Tells which devices were handed messages, or are being handed some. */
export async function historyStates(
  tx: StoreReader,
): Promise<Map<string, 'handing-over' | 'handed-over'>> {
  const done = (await handedOver.list(tx)).map(({ key }) => [key, 'handed-over'] as const);
  const open = (await handOvers.list(tx)).map(({ key }) => [key, 'handing-over'] as const);
  return new Map([...done, ...open]);
}
