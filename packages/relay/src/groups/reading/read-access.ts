/** Who may read a group, and from where on: the front door of every read (05 §10). */
import { hasOpenAccess, openAccessAfter, type TimelinePosition } from '@posthouse/protocol';
import type { Caller } from '../../accounts/index.ts';
import type { RelayContext } from '../../context.ts';
import type { DeviceSession } from '../../sessions/session.ts';
import type { Reader, Writer } from '../../storage/types.ts';
import { openInterval, readIntervals, type StoredInterval } from '../chain/access-store.ts';
import type { StoredGroup } from '../chain/group-store.ts';
import type { LoadedGroup } from '../chain/load-group.ts';
import { requireMember } from '../chain/require-member.ts';

/** A device that may read a group now, with the intervals that say what. */
export interface GroupReader {
  readonly caller: Caller;
  readonly group: LoadedGroup;
  readonly intervals: readonly StoredInterval[];
}

/**
 * The calling device as a reader of a group.
 * @throws ProtocolError `unauthorized`, `not_found`, `forbidden`
 */
async function requireReader(
  tx: Reader,
  session: DeviceSession,
  place: { readonly groupId: string; readonly now: number },
): Promise<GroupReader> {
  const { caller, group } = await requireMember(tx, session, place);
  return { caller, group, intervals: await readIntervals(tx, place.groupId, session) };
}

/** Whether a successful call of this device opens an interval (05 §10.2); a closed group has none. */
function needsInterval({ group, intervals }: GroupReader): boolean {
  return group.stored.status === 'active' && !hasOpenAccess(intervals);
}

/** Opens the interval of a device that has none: behind the head, from the current epoch on. */
async function openFor(
  tx: Writer,
  { caller, group }: Pick<GroupReader, 'caller' | 'group'>,
): Promise<StoredInterval> {
  const access = openAccessAfter(positionOf(group.stored));
  const { account, deviceId } = caller;
  await openInterval(tx, group.stored.group_id, { account, deviceId, access });
  return { ...access, deliveredEpoch: -1 };
}

function positionOf({ sequence, epoch }: StoredGroup): TimelinePosition {
  return { sequence, epoch };
}

/**
 * Answers a read from one snapshot, or, where it opens an interval or leaves a mark, from the
 * transaction that does. A read that fails opens nothing.
 *
 * @param answer makes the page; with a `Writer` it may write, without one it says `undefined` where
 *   it would have to
 */
export async function readGroupPage<T extends object>(
  context: RelayContext,
  { session, groupId }: { readonly session: DeviceSession; readonly groupId: string },
  answer: (reader: GroupReader, tx: Reader, writer?: Writer) => Promise<T | undefined>,
): Promise<T> {
  const { clock, storage } = context;
  // A device may have expired before its turn to write came: nobody ends what would open then.
  const confirm = (tx: Reader) => requireReader(tx, session, { groupId, now: clock.now() });
  const read = await storage.read(async (tx) => {
    const reader = await confirm(tx);
    return needsInterval(reader) ? undefined : await answer(reader, tx);
  });
  if (read !== undefined) return read;
  // With the account: its devices change before an interval opens, or find it open.
  const aggregates = [`account:${session.account}`, `group:${groupId}`];
  return await storage.write(aggregates, async (tx) => {
    const reader = await confirm(tx);
    const intervals = needsInterval(reader)
      ? [...reader.intervals, await openFor(tx, reader)]
      : reader.intervals;
    const page = await answer({ ...reader, intervals }, tx, tx);
    if (page === undefined) throw new Error('a read did not answer within a write');
    return page;
  });
}

/** Ranges of numbers, inclusive. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

/**
 * The union of what intervals permit, as disjoint ranges in ascending order.
 * @param highest where open intervals end for now
 */
export function permittedRanges(
  intervals: readonly StoredInterval[],
  of: 'messages' | 'keys',
  { after, highest }: { readonly after: number; readonly highest: number },
): Range[] {
  const ranges = intervals
    .filter(({ authority }) => authority)
    .map((interval) => ({
      from: Math.max(interval[of].from, after + 1),
      to: interval[of].to ?? highest,
    }))
    .filter(({ from, to }) => from <= to)
    .sort((a, b) => a.from - b.from);
  const union: Range[] = [];
  for (const range of ranges) {
    const last = union.at(-1);
    if (last === undefined || range.from > last.to + 1) union.push(range);
    else union[union.length - 1] = { from: last.from, to: Math.max(last.to, range.to) };
  }
  return union;
}
