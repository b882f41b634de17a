/** Ranges of lists: one meaning for messages, group messages, channel posts and entries. */
import { ClientError } from '../errors.ts';
import type { Collection } from '../store/collection.ts';
import type { StoreRange, StoreReader } from '../store/index.ts';
import { positionKey } from '../store/row-keys.ts';

/**
 * Selects a part of a list. Positions are the `order` of direct messages and the `sequence` of
 * entries of groups and channels.
 */
export interface ListOptions {
  /** Only what comes after this position. */
  readonly after?: number;
  /** Only what comes before this position. */
  readonly before?: number;
  /** Maximum number of results, from the beginning of the range, or from its end (`newestFirst`). */
  readonly limit?: number;
  /** Whether the newest comes first; oldest first by default. */
  readonly newestFirst?: boolean;
}

/** Checks a number of a caller. @throws ClientError `invalid_input` */
export function checkWhole(name: string, value: number, least = Number.MIN_SAFE_INTEGER): void {
  if (Number.isSafeInteger(value) && value >= least) return;
  const from = least === 0 ? ' from 0 up' : '';
  throw new ClientError('invalid_input', `${name}: give a whole number${from}`);
}

/** Returns the range of keys that consist of a prefix and a position. @throws ClientError */
export function rangeOf(
  prefix: string,
  { after = -1, before, limit, newestFirst = false }: ListOptions,
): StoreRange {
  checkWhole('after', after);
  if (before !== undefined) checkWhole('before', before);
  if (limit !== undefined) checkWhole('limit', limit, 0);
  return {
    prefix,
    ...(after >= 0 && { after: prefix + positionKey(after) }),
    ...(before !== undefined && { before: prefix + positionKey(Math.max(before, 0)) }),
    ...(limit !== undefined && { limit }),
    reverse: newestFirst,
  };
}

/** Lists the rows of a timeline, which belong to an object with an ID, such as a group. */
export async function listRange<T>(
  tx: StoreReader,
  timeline: Collection<T>,
  { id, ...options }: ListOptions & { readonly id: string },
): Promise<T[]> {
  const rows = await timeline.list(tx, rangeOf(`${id}/`, options));
  return rows.map(({ value }) => value);
}
