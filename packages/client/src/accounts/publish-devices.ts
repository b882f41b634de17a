/** Publishing what the account key signs: device states and routes (03 §4, §9). */
import {
  type AccountDeviceState,
  type AccountRoute,
  type AccountSigner,
  type DeviceCertificate,
  type DeviceStatePublished,
  deriveDeviceId,
  type FinalRoute,
  limits,
  nextRevision,
  ProtocolError,
  signDeviceState,
  signRouteDraft,
} from '@posthouse/protocol';
import type { RelayConnection } from '../connect/relay-connection.ts';
import type { Core } from '../core.ts';
import { unixSeconds } from '../environment.ts';
import { ClientError, isRefusal, RelayMisbehaviour } from '../errors.ts';
import { routes } from './account-rows.ts';
import { adoptState, resolveOwnState } from './device-states.ts';
import { highestRouteRevision, isCosigned, verifyAndStoreRoute } from './routes.ts';

/** Seconds a route is signed for: five years. */
const routeLifetime = 157_680_000;

/**
 * Checks the answer to a published state against what the relay is to the account.
 * @throws RelayMisbehaviour `wrong_publish_status`, `invalid_staged_until`
 */
function checkPublished(
  answer: DeviceStatePublished,
  expected: readonly DeviceStatePublished['status'][],
  now: number,
): void {
  const method = 'device.state.publish';
  const { status, staged_until: until } = answer as { status: string; staged_until?: number };
  if (!expected.includes(answer.status)) {
    throw new RelayMisbehaviour('wrong_publish_status', `${status} is not expected here`, {
      method,
    });
  }
  const valid = status === 'staged' ? until !== undefined && until > now : until === undefined;
  if (!valid) {
    throw new RelayMisbehaviour('invalid_staged_until', 'no retention deadline ahead', { method });
  }
}

/**
 * Reads the complete current state, signs the next one with changed certificates, and publishes
 * it at the home relay (01 §17.3).
 *
 * @param options.change gets the current certificates and gives the next ones
 * @throws ClientError, RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function publishDevices(
  core: Core,
  connection: RelayConnection,
  options: {
    readonly signer: AccountSigner;
    readonly change: (current: readonly DeviceCertificate[]) => DeviceCertificate[];
    readonly signal: AbortSignal;
  },
): Promise<AccountDeviceState> {
  const { signer, change, signal } = options;
  const { account } = signer;
  const current = await resolveOwnState(core, connection, { account, signal });
  const state = await nextState(core, signer, {
    current: current.revision,
    certificates: change(current.certificates),
  });
  const answer = await connection.call('device.state.publish', state, { signal });
  checkPublished(answer, ['accepted'], unixSeconds(core.clock));
  await core.store.write((tx) => adoptState(tx, state, core.clock.milliseconds()));
  return state;
}

/** @throws ClientError `counter_exhausted`, `invalid_input` */
export async function nextState(
  core: Core,
  signer: AccountSigner,
  facts: { readonly current: number | undefined; readonly certificates: DeviceCertificate[] },
): Promise<AccountDeviceState> {
  if (facts.certificates.length > limits.deviceStateCertificates) {
    throw new ClientError('invalid_input', 'an account has at the most 8 devices');
  }
  return await signDeviceState(core.network, signer, {
    revision: revisionAfter(core, facts.current),
    certificates: facts.certificates,
  });
}

function revisionAfter(core: Core, current: number | undefined): number {
  try {
    return nextRevision(current, core.clock.milliseconds());
  } catch (cause) {
    if (!(cause instanceof ProtocolError)) throw cause;
    throw new ClientError('counter_exhausted', 'no revision is left', { cause });
  }
}

/**
 * Certificates with one added, or replaced where its device is there already. Where the state is
 * full, devices whose period is over make room.
 */
export function withCertificate(
  core: Core,
  current: readonly DeviceCertificate[],
  added: DeviceCertificate,
): DeviceCertificate[] {
  const id = deriveDeviceId(core.network, added);
  const others = current.filter((item) => deriveDeviceId(core.network, item) !== id);
  if (others.length < limits.deviceStateCertificates) return [...others, added];
  const now = unixSeconds(core.clock);
  return [...others.filter((item) => item.expires_at > now), added];
}

/**
 * Makes a relay the account's home: pre-stores the state there, then publishes the route that
 * makes both take effect (03 §11.1, §12.1). Can be repeated after any failure.
 *
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function stageAndRoute(
  core: Core,
  connection: RelayConnection,
  options: {
    readonly state: AccountDeviceState;
    readonly signer: AccountSigner;
    /** Whether the relay may be the account's home already, and so take the state at once. */
    readonly mayBeHome: boolean;
    readonly signal: AbortSignal;
  },
): Promise<FinalRoute> {
  const { state, signer, mayBeHome, signal } = options;
  const known = await core.store.read((tx) => routes.get(tx, state.account));
  const begun = known?.draft?.relay_id === connection.relayId ? known.draft : undefined;
  const answer = await connection.call('device.state.publish', state, { signal });
  // Once a draft left, it may have made the relay the home already, and the state authoritative.
  const statuses = ['staged', 'accepted'] as const;
  const expected = mayBeHome || begun !== undefined ? statuses : statuses.slice(0, 1);
  checkPublished(answer, expected, unixSeconds(core.clock));
  const draft = begun ?? (await makeRouteDraft(core, connection, signer));
  return await publishRoute(core, connection, { draft, signer, signal });
}

/** Signs a route draft and keeps it: one revision never gets two contents (03 §3.4). */
async function makeRouteDraft(
  core: Core,
  connection: RelayConnection,
  signer: AccountSigner,
): Promise<AccountRoute> {
  const known = await core.store.read((tx) => routes.get(tx, signer.account));
  const now = connection.relayClock.now();
  const draft = await signRouteDraft(core.network, signer, {
    revision: revisionAfter(core, highestRouteRevision(known ?? {})),
    relay_id: connection.relayId,
    updated_at: now,
    expires_at: now + routeLifetime,
  });
  await core.store.write(async (tx) => {
    const latest = await routes.get(tx, signer.account);
    await routes.put(tx, signer.account, { ...latest, draft });
  });
  return draft;
}

/**
 * Publishes a draft: the answer is the draft with the relay's signature and nothing else changed.
 * After a lost answer the same draft may be published again.
 *
 * @throws RelayRefused, RelayUnreachable
 * @throws RelayMisbehaviour `route_altered`, `invalid_route` and what else a route can be wrong by
 */
async function publishRoute(
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
    // Refused by the time alone: nothing was kept of the draft, a new one gets a new revision.
    connection.relayClock.adopt();
    draft = await makeRouteDraft(core, connection, signer);
    answer = await connection.call(method, draft, { signal });
  }
  if (!isCosigned(draft, answer)) {
    throw new RelayMisbehaviour('route_altered', 'the relay changed more than its signature', {
      method,
    });
  }
  return await verifyAndStoreRoute(core, answer, { account: signer.account, method, signal });
}
