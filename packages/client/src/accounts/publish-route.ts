/** Signs and publishes the account's route: one revision never gets two contents (03 §3.4, §9). */
import {
  type AccountRoute,
  type AccountSigner,
  type FinalRoute,
  signRouteDraft,
} from '@posthouse/protocol';
import type { RelayConnection } from '../connect/relay-connection.ts';
import type { Core } from '../core.ts';
import { randomFraction } from '../environment.ts';
import { isRefusal, RelayMisbehaviour } from '../errors.ts';
import type { StoreWriter } from '../store/index.ts';
import { type RouteRecord, routes } from './account-rows.ts';
import { revisionAfter } from './publish-devices.ts';
import { highestRouteRevision, isCosigned, verifyAndStoreRoute } from './routes.ts';

/** Seconds a route is signed for: five years. */
const routeLifetime = 157_680_000;

/** By how much chance raises a new revision: less than this. */
const revisionSpread = 65_536;

function chance({ random }: Core): number {
  return Math.floor(randomFraction(random) * revisionSpread);
}

/** Returns the stored draft that names a relay, if its outcome is not known yet. */
export function draftFor(
  relayId: string,
  known: RouteRecord | undefined,
): AccountRoute | undefined {
  return known?.draft?.relay_id === relayId ? known.draft : undefined;
}

/**
 * Signs a route draft for a relay and stores it before it is sent; a stored draft for the relay is
 * returned unchanged. Chance raises the revision by up to a minute's milliseconds: two devices that
 * move the account at once do not put two contents under one revision (07 §B11), not even after a
 * clock that ran ahead.
 *
 * @param options.refused a draft that the relay refused for good, to be replaced
 * @param options.inTransaction runs in the transaction that stores the draft
 * @throws ClientError `counter_exhausted`
 */
export async function makeRouteDraft(
  core: Core,
  { relayId, relayClock }: RelayConnection,
  options: {
    readonly signer: AccountSigner;
    readonly refused?: AccountRoute;
    readonly inTransaction?: (tx: StoreWriter) => Promise<void>;
  },
): Promise<AccountRoute> {
  const { signer, refused, inTransaction } = options;
  const { account } = signer;
  const known = await core.store.read((tx) => routes.get(tx, account));
  const revision = revisionAfter(core, highestRouteRevision(known ?? {}));
  const now = relayClock.now();
  const draft = await signRouteDraft(core.network, signer, {
    revision: Math.min(revision + chance(core), Number.MAX_SAFE_INTEGER),
    relay_id: relayId,
    updated_at: now,
    expires_at: now + routeLifetime,
  });
  return await core.store.write(async (tx) => {
    const latest = await routes.get(tx, account);
    // Another process of this device may have stored one meanwhile.
    const begun = draftFor(relayId, latest);
    await inTransaction?.(tx);
    if (begun !== undefined && begun.revision !== refused?.revision) return begun;
    await routes.put(tx, account, { ...latest, draft });
    return draft;
  });
}

/**
 * Publishes a draft: the answer must be the draft with the relay's signature added. After a lost
 * answer, and after `temporarily_unavailable`, the same draft may be published again.
 *
 * @throws RelayRefused, RelayUnreachable
 * @throws RelayMisbehaviour `route_altered`, and the reasons of {@link verifyAndStoreRoute}
 */
export async function publishRoute(
  core: Core,
  connection: RelayConnection,
  options: {
    readonly draft: AccountRoute;
    readonly signer: AccountSigner;
    readonly signal: AbortSignal;
  },
): Promise<FinalRoute> {
  const { signer, signal } = options;
  const method = 'account.route.publish';
  let { draft } = options;
  let answer: AccountRoute;
  try {
    answer = await connection.call(method, draft, { signal });
  } catch (error) {
    if (!isRefusal(error, 'clock_skew')) throw error;
    // Refused because of its time only: the draft was not stored, a new one gets a new revision.
    connection.relayClock.adopt();
    draft = await makeRouteDraft(core, connection, { signer, refused: draft });
    answer = await connection.call(method, draft, { signal });
  }
  if (!isCosigned(draft, answer)) {
    throw new RelayMisbehaviour('route_altered', 'the relay changed more than its signature', {
      method,
    });
  }
  return await verifyAndStoreRoute(core, answer, { account: signer.account, method, signal });
}
