/** Sending routes to other relays again: own ones, and those of others held here (07 §B12). */
import type { FinalRoute } from '@posthouse/protocol';
import { parseJson } from '@posthouse/protocol/json';
import type { RelayContext, RouteLookup } from '../context.ts';
import { jobTaskFailed } from '../observability/events.ts';
import type { Writer } from '../storage/types.ts';
import { confirmOwnRoute } from './confirm-own-route.ts';
import { confirmHome, isRateLimited } from './home.ts';
import { addMissedRelays } from './missed-relay-store.ts';
import { markChecked } from './own-route-store.ts';
import { offerDelay, publishDelay } from './publish-times.ts';
import {
  claimPublication,
  type DueRoute,
  markPublished,
  readRoutesToPublish,
} from './route-value-store.ts';
import { readRoute } from './store.ts';
import { ownRoutesJobName } from './store-route.ts';

/** Routes read at once, and looked up and sent at once. */
const batchSize = 8;

/**
 * Batches of one run: the job's other tasks have their turn between them. Fewer of other relays'
 * accounts, of which any relay can send many: they must not keep own routes waiting.
 */
const batchesOfRun = { own: 64, others: 8 } as const;

/** Seconds after which a process that took a route and ended is not waited for. */
const claimTime = 120;

/**
 * Looks up each route that is due, which shows whether the account has left, and sends it to the
 * relays that the lookup found nearest to its key.
 */
export async function publishDueRoutes(context: RelayContext, signal: AbortSignal): Promise<void> {
  await publishDue(context, 'own', signal);
  await publishDue(context, 'others', signal);
}

async function publishDue(
  context: RelayContext,
  whose: keyof typeof batchesOfRun,
  signal: AbortSignal,
): Promise<void> {
  const { clock, identity, limits, storage } = context;
  for (let batch = 0; batch < batchesOfRun[whose] && !signal.aborted; batch += 1) {
    const now = clock.now();
    const latest = now + 2 * limits.ownRouteCheck;
    const route = { relayId: identity.relayId, isOwn: whose === 'own' };
    const page = { ...route, now, latest, limit: batchSize };
    const due = await storage.read((tx) => readRoutesToPublish(tx, page));
    if (due.length === 0) return;
    const owners = due.map(({ account }) => `account:${account}` as const);
    const claim = async (tx: Writer) => {
      const claimed: DueRoute[] = [];
      for (const route of due) {
        if (await claimPublication(tx, route, page.now + claimTime)) claimed.push(route);
      }
      return claimed;
    };
    const taken = await storage.write(owners, claim, { keepsFacts: true });
    await Promise.all(taken.map((route) => publishAgain(context, route, signal)));
  }
}

async function publishAgain(
  context: RelayContext,
  due: DueRoute,
  signal: AbortSignal,
): Promise<void> {
  const { clock, limits, storage } = context;
  const owner = `account:${due.account}` as const;
  try {
    const next = await publishOne(context, due);
    await storage.write(owner, (tx) => markPublished(tx, due, next), { keepsFacts: true });
  } catch (error) {
    if (signal.aborted) return;
    const retryInSeconds = limits.remoteRetryFirst;
    const failure = { job: ownRoutesJobName, task: 'publications', owner, error };
    jobTaskFailed(context, { ...failure, retryInSeconds });
    const publishAt = clock.now() + retryInSeconds;
    const next = { publishAt, failures: due.failures + 1 };
    await storage.write(owner, (tx) => markPublished(tx, due, next), { keepsFacts: true });
  }
}

/** @returns when the route is sent again; never if it may not be */
async function publishOne(
  context: RelayContext,
  due: DueRoute,
): Promise<{ readonly publishAt: number | undefined; readonly failures: number }> {
  const { clock, identity, limits, routeDirectory, storage } = context;
  const { account, failures } = due;
  const isOwn = due.relayId === identity.relayId;
  const soon = clock.now() + limits.remoteRetryFirst;
  let found: RouteLookup;
  try {
    found = await (isOwn ? confirmOwn(context, due) : confirmHome(context, account));
  } catch (error) {
    if (isRateLimited(error)) return { publishAt: soon, failures };
    throw error;
  }
  const now = clock.now();
  const known = await storage.read((tx) => readRoute(tx, account));
  const isCurrent = known?.revision === due.revision && !known.conflict && now < known.heldUntil;
  if (!isCurrent) return { publishAt: undefined, failures: 0 };
  const route = parseJson(known.text) as unknown as FinalRoute;
  const { isEnough } = await routeDirectory.replicate(route, undefined, found.nearest);
  const later = clock.now();
  // Other relays hold it too, and its home relay answers for it.
  if (!isOwn) return { publishAt: later + offerDelay(context, account), failures: 0 };
  if (isEnough) return { publishAt: later + publishDelay(context, account), failures: 0 };
  const pause = limits.remoteRetryFirst * 2 ** Math.min(failures, 30);
  const publishAt = later + Math.min(pause, publishDelay(context, account));
  return { publishAt, failures: failures + 1 };
}

/** Asks the network whether an account left, and records the relays that gave no answer. */
async function confirmOwn(
  context: RelayContext,
  { account, checkedAt }: DueRoute,
): Promise<RouteLookup> {
  const { clock, limits, storage } = context;
  const found = await confirmOwnRoute(context, account);
  const now = clock.now();
  const asked = { now, retryAt: now + limits.remoteRetryFirst };
  const record = async (tx: Writer) => {
    await markChecked(tx, { account, checkedAt }, now);
    await addMissedRelays(tx, found.missed, asked);
  };
  const aggregates = [ownRoutesJobName, `account:${account}`];
  await storage.write(aggregates, record, { keepsFacts: true });
  return found;
}
