/** Publishes objects that the account key signs: device states and routes (03 §4, §9). */
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
 * Checks the answer to a published state against the relay's role for the account. The deadline is
 * one of the relay's clock, and is judged by it.
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
 * @param options.change returns the next certificates for the current ones
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
  checkPublished(answer, ['accepted'], connection.relayClock.relayNow());
  await core.store.write((tx) => adoptState(tx, state, core.clock.milliseconds()));
  return state;
}

/** Signs the next device state. @throws ClientError `counter_exhausted`, `invalid_input` */
export async function nextState(
  core: Core,
  signer: AccountSigner,
  facts: { readonly current: number | undefined; readonly certificates: DeviceCertificate[] },
): Promise<AccountDeviceState> {
  if (facts.certificates.length > limits.deviceStateCertificates) {
    throw new ClientError('invalid_input', 'an account has 8 devices at most: remove one first');
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
 * Adds a certificate, or replaces the one of the same device. If the state is full, expired devices
 * are removed.
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
 * Makes a relay the account's home: stages the state there, then publishes the route that makes
 * both take effect (03 §11.1, §12.1). Can be repeated after any failure.
 *
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function stageAndRoute(
  core: Core,
  connection: RelayConnection,
  options: {
    readonly state: AccountDeviceState;
    readonly signer: AccountSigner;
    /** Whether the relay may be the account's home already, and so accept the state at once. */
    readonly mayBeHome: boolean;
    readonly signal: AbortSignal;
  },
): Promise<FinalRoute> {
  const { state, signer, mayBeHome, signal } = options;
  const known = await core.store.read((tx) => routes.get(tx, state.account));
  const begun = known?.draft?.relay_id === connection.relayId ? known.draft : undefined;
  const answer = await connection.call('device.state.publish', state, { signal });
  // A draft that was sent may have made the relay the home, and the state authoritative.
  const statuses = ['staged', 'accepted'] as const;
  const expected = mayBeHome || begun !== undefined ? statuses : statuses.slice(0, 1);
  checkPublished(answer, expected, connection.relayClock.relayNow());
  const draft = begun ?? (await makeRouteDraft(core, connection, signer));
  return await publishRoute(core, connection, { draft, signer, signal });
}

/** Signs and stores a route draft: one revision never gets two contents (03 §3.4). */
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
 * Publishes a draft: the answer must be the draft with the relay's signature added. After a lost
 * answer the same draft may be published again.
 *
 * @throws RelayRefused, RelayUnreachable
 * @throws RelayMisbehaviour `route_altered`, and the reasons of {@link verifyAndStoreRoute}
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
    // Refused because of its time only: the draft was not stored, a new one gets a new revision.
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
