/** Asking again the relays that gave no answer about accounts at home here (07 §B12). */
import type { RelayContext } from '../context.ts';
import { confirmOwnRoute } from './confirm-own-route.ts';
import {
  deleteMissedRelay,
  type MissedRelay,
  postponeRelay,
  readDueRelays,
  wakeMissedRelay,
} from './missed-relay-store.ts';
import { type OwnRoute, readRoutesToCheck, wakeAnnouncements } from './own-route-store.ts';
import { retryDelay } from './rules.ts';
import { ownRoutesJobName } from './store-route.ts';

/** Relays asked at once, and accounts that each is asked for at once. */
const batchSize = 8;

/** Routes made due in one transaction. */
const wakeBatch = 500;

/** Asks relays that are due for the routes that they missed; one without an answer has a pause. */
export async function askMissedRelays(context: RelayContext, signal: AbortSignal): Promise<void> {
  const { clock, storage } = context;
  for (;;) {
    const page = { now: clock.now(), limit: batchSize };
    const due = await storage.read((tx) => readDueRelays(tx, page));
    if (due.length === 0 || signal.aborted) return;
    await Promise.all(due.map((relay) => askAgain(context, relay, signal)));
  }
}

async function askAgain(
  context: RelayContext,
  relay: MissedRelay,
  signal: AbortSignal,
): Promise<void> {
  const { clock, identity, limits, storage } = context;
  // All routes were confirmed since: a relay that is still active was asked, or missed again.
  let isDone = relay.missedAt + 2 * limits.ownRouteCheck <= clock.now();
  let { after } = relay;
  while (!isDone) {
    const page = { relayId: identity.relayId, by: Number.MAX_SAFE_INTEGER, limit: batchSize };
    const routes = await storage.read((tx) => readRoutesToCheck(tx, { ...page, after }));
    const last: OwnRoute | undefined = routes.at(-1);
    const answers = await Promise.all(
      routes.map(({ account }) => confirmOwnRoute(context, account, relay.relayId)),
    );
    if (signal.aborted || answers.some(({ missed }) => missed.length > 0)) break;
    if (last === undefined) isDone = true;
    else after = last;
  }
  const retryAt = clock.now() + retryDelay(relay.failures, limits);
  await storage.write(ownRoutesJobName, (tx) =>
    isDone ? deleteMissedRelay(tx, relay) : postponeRelay(tx, relay, { after, retryAt }),
  );
}

/**
 * Makes due at once what waits for a relay that is reachable again: questions about accounts at home
 * here, and routes of accounts that left that relay.
 *
 * @example
 * await wakeRoutesFor(context, relayId);
 */
export async function wakeRoutesFor(context: RelayContext, relayId: string): Promise<void> {
  const { clock, jobs, storage } = context;
  const now = clock.now();
  await storage.write(ownRoutesJobName, (tx) => wakeMissedRelay(tx, relayId, now));
  for (let woken = wakeBatch; woken === wakeBatch; ) {
    woken = await storage.write(ownRoutesJobName, (tx) =>
      wakeAnnouncements(tx, relayId, { now, limit: wakeBatch }),
    );
  }
  jobs.wake(ownRoutesJobName);
}
