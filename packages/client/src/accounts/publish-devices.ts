/** Publishes device states, which the account key signs (03 §4). */
import {
  type AccountDeviceState,
  type AccountSigner,
  type DeviceCertificate,
  type DeviceStatePublished,
  deriveDeviceId,
  limits,
  nextRevision,
  ProtocolError,
  signDeviceState,
} from '@posthouse/protocol';
import type { RelayConnection } from '../connect/relay-connection.ts';
import type { Core } from '../core.ts';
import { unixSeconds } from '../environment.ts';
import { ClientError, isRefusal, RelayMisbehaviour } from '../errors.ts';
import { adoptState, resolveOwnState } from './device-states.ts';

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

/** Returns the next revision of a state or route. @throws ClientError `counter_exhausted` */
export function revisionAfter(core: Core, current: number | undefined): number {
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

/** Explains the refusal of an account that is new at a relay (03 §4.3); other errors stay. */
function explained(error: unknown): unknown {
  if (!isRefusal(error, 'target_not_local', 'route_stale')) return error;
  return new ClientError(
    'registration_refused',
    `the relay does not take this account: ${error.message}; if it takes accounts by invite, pass ` +
      'an invite code of its operator that is not used up',
    { cause: error },
  );
}

/**
 * Publishes a state at a relay that a route is about to make the account's home (03 §4.2).
 *
 * @param options.mayBeHome whether the relay may be the home already, and so accept it at once
 * @returns seconds for which the relay keeps the state from now on, by its own clock; `undefined`
 *   if it accepted the state as the account's home
 * @throws ClientError `registration_refused` if the relay takes the account only with a right
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function stageState(
  connection: RelayConnection,
  state: AccountDeviceState,
  options: { readonly mayBeHome: boolean; readonly signal: AbortSignal },
): Promise<number | undefined> {
  const { mayBeHome, signal } = options;
  const answer = await connection
    .call('device.state.publish', state, { signal })
    .catch((error: unknown) => {
      throw explained(error);
    });
  const now = connection.relayClock.relayNow();
  checkPublished(answer, mayBeHome ? ['staged', 'accepted'] : ['staged'], now);
  return answer.status === 'staged' ? answer.staged_until - now : undefined;
}
