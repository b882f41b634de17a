/** Reads the account's timeline, on the home relay and on former ones (04 §18). */
import { type TimelineRecord, timelines } from '../accounts/account-rows.ts';
import { resolveOwnState } from '../accounts/device-states.ts';
import { rewindChannelsOf } from '../channels/timeline/rewind-channel.ts';
import type { AccountCore } from '../core.ts';
import { unixSeconds } from '../environment.ts';
import { RelayMisbehaviour } from '../errors.ts';
import { recordEvents, recordPassing } from '../events/event-log.ts';
import type { AccountEvent } from '../events.ts';
import { rewindGroupsOf } from '../groups/timeline/rewind-group.ts';
import { unlessMissing } from '../load-part.ts';
import { isOwnDeviceType } from '../own-devices/object-types.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';
import type { TimeLimit } from '../sync/budget.ts';
import { enqueueTask } from '../sync/tasks.ts';
import { type ApplyOptions, applyEntry } from './apply-entry.ts';
import type { OpenedEntry } from './open-page.ts';
import { requestPage } from './timeline-page.ts';

const method = 'message.timeline.sync';

const emptyTimeline: TimelineRecord = { position: -1, gap: false };

async function timelineRecord(tx: StoreReader, relayId: string): Promise<TimelineRecord> {
  return (await timelines.get(tx, relayId)) ?? emptyTimeline;
}

/** Returns the highest sequence up to which a relay's records are processed; else -1. */
export async function timelinePosition(tx: StoreReader, relayId: string): Promise<number> {
  return (await timelineRecord(tx, relayId)).position;
}

/**
 * Reads a relay's timeline from the stored position to its head, or until the time limit. Each page
 * is verified as a whole; then its records are applied in order, and the same transaction moves the
 * position. It never moves past a record that is not completely processed. If the relay went back to
 * an earlier state, everything it has is read again, and what is known already is not applied again.
 * Yields events by page.
 *
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour; what was applied before stays
 */
export async function* readTimeline(
  core: AccountCore,
  relayId: string,
  { signal, isReached }: TimeLimit,
): AsyncGenerator<readonly AccountEvent[]> {
  const seen = new Set<string>();
  let wentBack = false;
  for (;;) {
    signal.throwIfAborted();
    const known = await core.store.read((tx) => timelineRecord(tx, relayId));
    const page = await requestPage(core, relayId, { known, signal });
    if (page.kind === 'rollback') {
      if (wentBack) throw new RelayMisbehaviour('timeline_rollback', 'back once more', { method });
      wentBack = true;
      seen.clear();
      yield await startOver(core, relayId, known);
      continue;
    }
    const { opened, hasMore } = page;
    // Sequences are not signed: with repeated records a relay could serve pages without end.
    if (hasMore && opened.every(({ digest }) => seen.has(digest))) {
      throw new RelayMisbehaviour('page_without_end', 'the same records again', { method });
    }
    for (const { digest } of opened) seen.add(digest);
    if (page.hasGap) yield await storeGap(core, relayId);
    yield* applyPage(core, relayId, { opened, known, signal });
    if (!hasMore) return;
    if (isReached()) {
      const event = { kind: 'timeline-incomplete', relayId } as const;
      await recordPassing(core, [event]);
      yield [event];
      return;
    }
  }
}

/** Seconds between two readings of everything because of what a relay says. */
const rereadInterval = 3_600;
/** Seconds by which a time may be ahead of the relay's clock. */
const futureTolerance = 300;

/**
 * Has everything read again that a relay has, and what it may have lost published again, if the relay
 * says that it was restored since it was last asked (02 §11.2). Call it before {@link readTimeline}.
 * At most once an hour: a relay may say something else each time.
 *
 * @param restoredAt as the relay said, Unix seconds; 0 if it never was
 */
export async function noticeRestore(
  core: AccountCore,
  relayId: string,
  restoredAt = 0,
): Promise<readonly AccountEvent[]> {
  const now = unixSeconds(core.clock);
  if (restoredAt > core.relay(relayId).relayClock.relayNow() + futureTolerance) return [];
  return await core.store.write(async (tx) => {
    const known = await timelineRecord(tx, relayId);
    if (known.restoredAt === restoredAt) return [];
    // A relay that was restored before this device knew of such marks is found out by its records.
    if (known.restoredAt === undefined) {
      await timelines.put(tx, relayId, { ...known, restoredAt });
      return [];
    }
    const { rereadAt } = known;
    const isRecent = rereadAt !== undefined && rereadAt <= now && now - rereadAt < rereadInterval;
    if (isRecent) return [];
    await enqueueTask(tx, { kind: 'publish-profile' });
    return await beginAgain(tx, relayId, { ...known, restoredAt, rereadAt: now });
  });
}

async function storeGap(core: AccountCore, relayId: string): Promise<AccountEvent[]> {
  return await core.store.write(async (tx) => {
    const known = await timelineRecord(tx, relayId);
    if (known.gap) return [];
    await timelines.put(tx, relayId, { ...known, gap: true });
    return await recordGap(tx, relayId, 'retention');
  });
}

/**
 * Moves the position to the beginning, because the relay lost records that it had given, and rewinds
 * the groups and channels that it hosts, which are in the same storage. Reported once, until a record
 * is applied that was not known: a relay may go back and forth.
 */
async function startOver(
  core: AccountCore,
  relayId: string,
  from: TimelineRecord,
): Promise<AccountEvent[]> {
  return await core.store.write(async (tx) => {
    const known = await timelineRecord(tx, relayId);
    // Another process of this device may have read further, or started over.
    if (!isSamePlace(known, from)) return [];
    return await beginAgain(tx, relayId, known);
  });
}

async function beginAgain(
  tx: StoreWriter,
  relayId: string,
  { position: _position, lastRecord: _record, ...known }: TimelineRecord,
): Promise<AccountEvent[]> {
  await timelines.put(tx, relayId, { ...known, position: -1, gap: true, rollback: true });
  // Their heads may be as high again, so that the host refuses no position.
  await rewindGroupsOf(tx, relayId);
  await rewindChannelsOf(tx, relayId);
  if (known.rollback) return [];
  return await recordGap(tx, relayId, 'rollback');
}

async function recordGap(
  tx: StoreWriter,
  relayId: string,
  cause: 'retention' | 'rollback',
): Promise<AccountEvent[]> {
  const event = { kind: 'timeline-gap', relayId, cause } as const;
  await recordEvents(tx, [event]);
  return [event];
}

function isSamePlace(a: TimelineRecord, b: TimelineRecord): boolean {
  return a.position === b.position && a.lastRecord?.digest === b.lastRecord?.digest;
}

/**
 * Applies records in order. If one needs the own device state first, the records before it are
 * committed, the state is read, and the rest is applied.
 */
async function* applyPage(
  core: AccountCore,
  relayId: string,
  page: {
    readonly opened: readonly OpenedEntry[];
    readonly known: TimelineRecord;
    readonly signal: AbortSignal;
  },
): AsyncGenerator<readonly AccountEvent[]> {
  let { opened, known } = page;
  let ownStateIsFresh = false;
  // A transaction awaits nothing but its store.
  const hasOwn = opened.some(
    ({ parsed }) => parsed?.kind === 'unknown' && isOwnDeviceType(parsed.type),
  );
  const later = hasOwn ? await core.later().catch(unlessMissing) : undefined;
  const applyOwnDeviceObject = later?.applyOwnDeviceObject;
  while (opened.length > 0) {
    const options = { ownStateIsFresh, applyOwnDeviceObject };
    const work = { relayId, opened, from: known, options };
    const done = await core.store.write((tx) => applyUntilBlocked(core, tx, work));
    yield done.events;
    opened = opened.slice(done.applied);
    known = done.record;
    if (opened.length > 0) {
      const home = await core.home();
      await resolveOwnState(core, home, { account: core.account, signal: page.signal });
      ownStateIsFresh = true;
    }
  }
}

async function applyUntilBlocked(
  core: AccountCore,
  tx: StoreWriter,
  work: {
    readonly relayId: string;
    readonly opened: readonly OpenedEntry[];
    /** The record before the first of `opened`. */
    readonly from: TimelineRecord;
    readonly options: ApplyOptions;
  },
): Promise<{ applied: number; record: TimelineRecord; events: AccountEvent[] }> {
  const { relayId, opened, from, options } = work;
  const known = await timelineRecord(tx, relayId);
  const events: AccountEvent[] = [];
  let [record, applied, hasNew] = [from, 0, false];
  for (const each of opened) {
    const result = await applyEntry(core, tx, each, options);
    if (!result.complete) break;
    events.push(...result.events);
    applied += 1;
    hasNew ||= result.isNew;
    const { sequence: position, accepted_at } = each.entry;
    record = { ...record, position, lastRecord: { digest: each.digest, accepted_at } };
  }
  // Another process of this device may have read further meanwhile, or started over.
  if (applied > 0 && isSamePlace(known, from)) {
    const { position, lastRecord } = record;
    const { rollback, ...rest } = known;
    const isReported = rollback !== undefined && !hasNew;
    await timelines.put(tx, relayId, {
      ...rest,
      position,
      ...(lastRecord !== undefined && { lastRecord }),
      ...(isReported && { rollback }),
    });
  }
  await recordEvents(tx, events);
  return { applied, record, events };
}
