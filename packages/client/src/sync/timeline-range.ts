/** Ranges of the stored timelines of groups and channels. */
import type { Collection } from '../store/collection.ts';
import type { StoreReader } from '../store/index.ts';
import { keyOf } from '../store/row-keys.ts';

/** A range of the stored timeline, oldest first; with `last` its newest entries. */
export interface EntryRange {
  /** Only after this sequence. */
  readonly after?: number;
  /** Only before this sequence. */
  readonly before?: number;
  /** Limit of entries, counted from the beginning of the range. */
  readonly limit?: number;
  /** Limit of entries, counted from the end of the range. */
  readonly last?: number;
}

/** Lists the rows of a range, oldest first. */
export async function listRange<T>(
  tx: StoreReader,
  timeline: Collection<T>,
  { id, after = -1, before, limit, last }: EntryRange & { readonly id: string },
): Promise<T[]> {
  const size = last ?? limit;
  const rows = await timeline.list(tx, {
    prefix: `${id}/`,
    ...(after >= 0 && { after: keyOf(id, after) }),
    ...(before !== undefined && { before: keyOf(id, before) }),
    ...(size !== undefined && { limit: size }),
    ...(last !== undefined && { reverse: true }),
  });
  const values = rows.map(({ value }) => value);
  return last === undefined ? values : values.reverse();
}
