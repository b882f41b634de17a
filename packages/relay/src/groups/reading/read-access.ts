/** Who may read a group, and from which position: every read of a page passes here (05 §10). */
import { hasOpenAccess, openAccessAfter, type TimelinePosition } from '@posthouse/protocol';
import type { Caller, CallingDevice } from '../../accounts/index.ts';
import type { RelayContext } from '../../context.ts';
import type { Reader, Writer } from '../../storage/types.ts';
import { openInterval, readIntervals, type StoredInterval } from '../chain/access-store.ts';
import type { StoredGroup } from '../chain/group-store.ts';
import { type GroupCall, readInGroup, writeInGroup } from '../chain/group-transactions.ts';
import type { LoadedGroup } from '../chain/load-group.ts';
import { requireMember } from '../chain/require-member.ts';

/** A device that may read a group now, with the intervals that bound what it reads. */
export interface GroupReader {
  readonly caller: Caller;
  readonly group: LoadedGroup;
  readonly intervals: readonly StoredInterval[];
}

/**
 * Reads a page of a group from one snapshot or, if the read opens an interval or marks a delivery,
 * in the transaction that does so. A read that fails opens nothing.
 *
 * @param readPage reads the page; with a `Writer` it may write, without one it returns `undefined`
 *   if it would have to
 * @throws ProtocolError `unauthorized`, `not_found`, `forbidden`, and what `readPage` throws
 */
export async function readGroupPage<T extends object>(
  context: RelayContext,
  call: GroupCall,
  readPage: (reader: GroupReader, tx: Reader, writer?: Writer) => Promise<T | undefined>,
): Promise<T> {
  const page = await readInGroup(context, call, async (tx, calling) => {
    const reader = await requireReader(tx, call, calling);
    return needsInterval(reader) ? undefined : await readPage(reader, tx);
  });
  if (page !== undefined) return page;
  // With the account: its devices change before an interval opens, or find it open.
  const alsoHolds = [`account:${call.session.account}`];
  return await writeInGroup(context, { ...call, alsoHolds }, async (tx, calling) => {
    // The device is confirmed again: no job would end an interval opened after it became inactive.
    const reader = await requireReader(tx, call, calling);
    const opened = needsInterval(reader) ? [await openFor(tx, reader)] : [];
    const intervals = [...reader.intervals, ...opened];
    const written = await readPage({ ...reader, intervals }, tx, tx);
    if (written === undefined) throw new Error('a read did not answer within a write');
    return written;
  });
}

async function requireReader(
  tx: Reader,
  call: GroupCall,
  { caller }: CallingDevice,
): Promise<GroupReader> {
  const { group } = await requireMember(tx, call);
  return { caller, group, intervals: await readIntervals(tx, call.groupId, caller) };
}

/** Returns whether a read by this device opens an interval (05 §10.2); in a closed group none does. */
function needsInterval({ group, intervals }: GroupReader): boolean {
  return group.stored.status === 'active' && !hasOpenAccess(intervals);
}

/** Opens the interval of a device that has none: after the head, from the current epoch on. */
async function openFor(tx: Writer, { caller, group }: GroupReader): Promise<StoredInterval> {
  const access = openAccessAfter(positionOf(group.stored));
  const { account, deviceId } = caller;
  await openInterval(tx, group.stored.group_id, { account, deviceId, access });
  return { ...access, authority: true, deliveredEpoch: -1 };
}

function positionOf({ sequence, epoch }: StoredGroup): TimelinePosition {
  return { sequence, epoch };
}

/** A range of sequences or epochs, inclusive. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

/**
 * Merges what intervals permit into disjoint ranges in ascending order.
 * @param bounds `highest`: where open intervals end for now
 */
export function permittedRanges(
  intervals: readonly StoredInterval[],
  of: 'messages' | 'keys',
  { after, highest }: { readonly after: number; readonly highest: number },
): Range[] {
  const ranges = intervals
    .map((interval) => ({
      from: Math.max(interval[of].from, after + 1),
      to: interval[of].to ?? highest,
    }))
    .filter(({ from, to }) => from <= to)
    .sort((a, b) => a.from - b.from);
  const merged: Range[] = [];
  for (const range of ranges) {
    const last = merged.at(-1);
    if (last === undefined || range.from > last.to + 1) merged.push(range);
    else merged[merged.length - 1] = { from: last.from, to: Math.max(last.to, range.to) };
  }
  return merged;
}
