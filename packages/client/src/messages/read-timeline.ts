/** Reads the account's timeline, on the home relay and on former ones (04 §18). */
import { type TimelineRecord, timelines } from '../accounts/account-rows.ts';
import { resolveOwnState } from '../accounts/device-states.ts';
import type { AccountCore } from '../core.ts';
import { RelayMisbehaviour } from '../errors.ts';
import type { AccountEvent } from '../events.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';
import type { TimeLimit } from '../sync/budget.ts';
import { applyEntry } from './apply-entry.ts';
import { type OpenedEntry, openPage } from './open-page.ts';

const method = 'message.timeline.sync';

/** Records per request. The relay may return fewer; only `has_more` says whether more exist. */
const pageSize = 100;

const emptyTimeline: TimelineRecord = { position: -1, gap: false };

/** Returns the highest sequence up to which a relay's records are processed; else -1. */
export async function timelinePosition(tx: StoreReader, relayId: string): Promise<number> {
  return ((await timelines.get(tx, relayId)) ?? emptyTimeline).position;
}

/**
 * Reads a relay's timeline from the stored position to its head, or until the time limit. Each page
 * is verified as a whole; then its records are applied in order, and the same transaction moves the
 * position. It never moves past a record that is not completely processed. Yields events by page.
 *
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour; what was applied before stays
 */
export async function* readTimeline(
  core: AccountCore,
  relayId: string,
  { signal, isReached }: TimeLimit,
): AsyncGenerator<readonly AccountEvent[]> {
  const { account, device, store } = core;
  const seen = new Set<string>();
  for (;;) {
    signal.throwIfAborted();
    const after = await store.read((tx) => timelinePosition(tx, relayId));
    const params = { after, limit: pageSize };
    const page = await core.relay(relayId).call(method, params, { signal });
    const reading = { account, deviceId: device.deviceId, after, limit: pageSize };
    const opened = openPage(core, page, reading);
    // Sequences are not signed: with repeated records a relay could serve pages without end.
    if (page.has_more && opened.every(({ digest }) => seen.has(digest))) {
      throw new RelayMisbehaviour('page_without_end', 'the same records again', { method });
    }
    for (const { digest } of opened) seen.add(digest);
    if (page.has_retention_gap === true) yield await storeGap(core, relayId);
    yield* applyPage(core, relayId, { opened, after, signal });
    if (!page.has_more) return;
    if (isReached()) {
      yield [{ kind: 'timeline-incomplete', relayId }];
      return;
    }
  }
}

async function storeGap(core: AccountCore, relayId: string): Promise<AccountEvent[]> {
  return await core.store.write(async (tx) => {
    const known = (await timelines.get(tx, relayId)) ?? emptyTimeline;
    if (known.gap) return [];
    await timelines.put(tx, relayId, { ...known, gap: true });
    return [{ kind: 'timeline-gap', relayId }];
  });
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
    readonly after: number;
    readonly signal: AbortSignal;
  },
): AsyncGenerator<readonly AccountEvent[]> {
  let { opened, after } = page;
  let ownStateIsFresh = false;
  while (opened.length > 0) {
    const work = { relayId, opened, after, ownStateIsFresh };
    const done = await core.store.write((tx) => applyUntilBlocked(core, tx, work));
    yield done.events;
    opened = opened.slice(done.applied);
    after = done.position;
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
    readonly after: number;
    readonly ownStateIsFresh: boolean;
  },
): Promise<{ applied: number; position: number; events: AccountEvent[] }> {
  const { relayId, opened, after, ownStateIsFresh } = work;
  const known = (await timelines.get(tx, relayId)) ?? emptyTimeline;
  const done = { applied: 0, position: after, events: [] as AccountEvent[] };
  for (const entry of opened) {
    const result = await applyEntry(core, tx, entry, { ownStateIsFresh });
    if (!result.complete) break;
    done.events.push(...result.events);
    done.applied += 1;
    done.position = entry.entry.sequence;
  }
  // Another process of this device may have read further meanwhile; a position never falls.
  const position = Math.max(known.position, done.position);
  if (position !== known.position) await timelines.put(tx, relayId, { ...known, position });
  return done;
}
