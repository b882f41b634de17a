import type { FinalRoute } from '@posthouse/protocol';
import { parseJson } from '@posthouse/protocol/json';
import type { Job, RelayContext } from '../context.ts';
import { forEachAggregate, nextRun } from '../jobs/for-each-aggregate.ts';
import { confirmOwnRoute } from './confirm-own-route.ts';
import { addMissedRelays, nextMissedRelay } from './missed-relay-store.ts';
import { askMissedRelays } from './missed-relays.ts';
import {
  earliestCheck,
  endAnnouncement,
  markChecked,
  nextAnnouncement,
  type OwnRoute,
  type PendingRoute,
  postponeAnnouncement,
  readPendingRoutes,
  readRoutesToCheck,
} from './own-route-store.ts';
import { publishDueRoutes } from './publish-routes.ts';
import { shortestDelay } from './publish-times.ts';
import { nextPublication } from './route-value-store.ts';
import { retryDelay } from './rules.ts';
import { ownRoutesJobName } from './store-route.ts';

/** Routes read at once, and asked for at once. */
const batchSize = 8;

/** Batches of routes that are confirmed until those that are due to be sent have their turn. */
const batchesOfTurn = 64;

/**
 * Asks the network for higher routes of the accounts at home here, so that this relay learns that an
 * account left it, and again the relays that did not answer; sends their routes to other relays
 * again, and to relays that accounts left and that were not reached (07 §B12).
 */
export const ownRoutesJob: Job = {
  name: ownRoutesJobName,
  async run(context, signal) {
    const { clock, identity, limits, routeDirectory, storage } = context;
    const sendDue = async () => {
      await announce(context, signal);
      if (routeDirectory.hasRelays) await publishDueRoutes(context, signal);
    };
    await sendDue();
    // Without a relay to ask there is nothing to do. The first reading of the registry that lists one
    // wakes the job.
    const { hasRelays } = routeDirectory;
    const isComplete = !hasRelays || (await check(context, signal, sendDue));
    if (hasRelays) await askMissedRelays(context, signal);
    const retryAt = isComplete ? 0 : clock.now() + limits.remoteRetryFirst;
    const next = await storage.read(async (tx) => {
      const announceAt = (await nextAnnouncement(tx)) ?? Infinity;
      // A route that is stored from now on, or the first other relay, wakes no job: this run comes
      // before a route is due.
      const soonest = clock.now() + shortestDelay(limits);
      if (!hasRelays) return Math.min(announceAt, soonest);
      const checkedAt = await earliestCheck(tx, identity.relayId);
      const checkAt = checkedAt === undefined ? Infinity : checkedAt + longestUnchecked(limits);
      const missedAt = (await nextMissedRelay(tx)) ?? Infinity;
      const publishAt = Math.min((await nextPublication(tx)) ?? Infinity, soonest);
      return Math.min(Math.max(checkAt, retryAt), missedAt, announceAt, publishAt);
    });
    return nextRun(context, ownRoutesJobName, next);
  },
};

/** Each publication confirms its route; what may not be published is confirmed less often. */
const longestUnchecked = ({ ownRouteCheck }: RelayContext['limits']) => 2 * ownRouteCheck;

async function announce(context: RelayContext, signal: AbortSignal): Promise<void> {
  const { clock, limits, routeDirectory, storage } = context;
  const now = clock.now();
  await forEachAggregate(context, signal, {
    job: ownRoutesJobName,
    task: 'announcements',
    find: (tx, after: PendingRoute | undefined) =>
      readPendingRoutes(tx, { now, after, limit: batchSize }),
    aggregateOf: ({ account }) => `account:${account}`,
    work: async (owner, [pending]) => {
      const route = parseJson(pending.text) as unknown as FinalRoute;
      const isExpired = route.expires_at <= now;
      const { reachedLeaving } = isExpired
        ? { reachedLeaving: true }
        : await routeDirectory.replicate(route, pending.previousRelay, []);
      const retryAt = clock.now() + retryDelay(pending.failures, limits);
      await storage.write(owner, (tx) =>
        reachedLeaving ? endAnnouncement(tx, pending) : postponeAnnouncement(tx, pending, retryAt),
      );
    },
  });
}

/**
 * Confirms routes in batches after a start, at the pace of the questions to other relays. Relays that
 * did not answer are recorded.
 *
 * @param sendDue called at times: after a start there may be a million routes to confirm
 * @returns whether the network was asked for all
 */
async function check(
  context: RelayContext,
  signal: AbortSignal,
  sendDue: () => Promise<void>,
): Promise<boolean> {
  const { clock, identity, limits, routeLookups, storage } = context;
  const now = clock.now();
  // After a start all are due: what came while the relay was stopped was missed.
  const by = Math.max(now - longestUnchecked(limits), routeLookups.startedAt - 1);
  let isComplete = true;
  let after: OwnRoute | undefined;
  for (let batch = 1; !signal.aborted; batch += 1) {
    if (batch % batchesOfTurn === 0) await sendDue();
    const due = await storage.read((tx) =>
      readRoutesToCheck(tx, { relayId: identity.relayId, by, after, limit: batchSize }),
    );
    after = due.at(-1);
    if (after === undefined) break;
    const outcomes = await Promise.allSettled(
      due.map(({ account }) => confirmOwnRoute(context, account)),
    );
    const checked = due.filter((_, index) => outcomes[index]?.status === 'fulfilled');
    const answers = outcomes.filter((outcome) => outcome.status === 'fulfilled');
    const missed = new Set(answers.flatMap(({ value }) => value.missed));
    if (checked.length < due.length) isComplete = false;
    const asked = { now: clock.now(), retryAt: clock.now() + limits.remoteRetryFirst };
    await storage.write(
      [ownRoutesJobName, ...due.map(({ account }) => `account:${account}`)],
      async (tx) => {
        for (const route of checked) await markChecked(tx, route, asked.now);
        await addMissedRelays(tx, missed, asked);
      },
    );
  }
  return isComplete;
}
