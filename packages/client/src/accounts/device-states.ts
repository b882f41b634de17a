/** Device states: verified, with one revision history per account (01 §10.2, 03 §5.7). */
import {
  type AccountDeviceState,
  type Authorization,
  currentDevices,
  type DeviceCertificate,
  isGrant,
  type Network,
  signDeviceStateQuery,
  verifyDeviceState,
  verifyInvite,
} from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import type { RelayConnection } from '../connect/relay-connection.ts';
import type { AccountCore, Core } from '../core.ts';
import { unixSeconds } from '../environment.ts';
import { ClientError, checkRelayAnswer, isRefusal, RelayMisbehaviour } from '../errors.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';
import { deviceStates, stateHints } from './account-rows.ts';

const method = 'device.state.resolve';

/**
 * Verifies a device state that a relay answered.
 * @throws RelayMisbehaviour `wrong_account`, `invalid_device_state`
 */
function verifiedState(network: Network, value: unknown, account: string): AccountDeviceState {
  const claimed = (value as { account?: unknown } | null)?.account;
  if (typeof claimed === 'string' && claimed !== account) {
    throw new RelayMisbehaviour('wrong_account', 'device state of another account', { method });
  }
  return checkRelayAnswer('invalid_device_state', method, () => {
    verifyDeviceState(network, value);
    return value;
  });
}

/** A verified state compared with the known one. */
type StateOrder = 'higher' | 'same' | 'lower' | 'conflicting';

/** Compares by revision; equal revisions are the same only with the same complete content. */
function compareStates(
  known: AccountDeviceState | undefined,
  state: AccountDeviceState,
): StateOrder {
  if (known === undefined || state.revision > known.revision) return 'higher';
  if (state.revision < known.revision) return 'lower';
  return canonicalJson(state) === canonicalJson(known) ? 'same' : 'conflicting';
}

/**
 * Stores a verified state, and removes hints that it covers.
 *
 * @param checkedAt Unix milliseconds of the read; 0 for a state received with a message
 * @throws RelayMisbehaviour `lower_revision`, `conflicting_revision`
 */
export async function adoptState(
  tx: StoreWriter,
  state: AccountDeviceState,
  checkedAt: number,
): Promise<void> {
  const known = await deviceStates.get(tx, state.account);
  const standing = compareStates(known?.state, state);
  if (standing === 'lower') {
    throw new RelayMisbehaviour('lower_revision', 'older than the known device state', { method });
  }
  if (standing === 'conflicting') {
    throw new RelayMisbehaviour('conflicting_revision', 'known revision with other content', {
      method,
    });
  }
  const latest = standing === 'same' ? Math.max(checkedAt, known?.checkedAt ?? 0) : checkedAt;
  await deviceStates.put(tx, state.account, { state, checkedAt: latest });
  const hint = await stateHints.get(tx, state.account);
  if (hint !== undefined && hint.revision <= state.revision) {
    await stateHints.delete(tx, state.account);
  }
}

/**
 * Stores the highest revision that hints announced. A hint changes nothing else (02 §12.4).
 * @returns whether the revision is newer than the known state
 */
export async function noteStateHint(
  tx: StoreWriter,
  account: string,
  revision: number,
): Promise<boolean> {
  const known = await deviceStates.get(tx, account);
  if (known !== undefined && revision <= known.state.revision) return false;
  const pending = await stateHints.get(tx, account);
  if (pending === undefined || pending.revision < revision) {
    await stateHints.put(tx, account, { revision });
  }
  return true;
}

/** Returns the stored state of an account, if any. */
export async function knownState(
  tx: StoreReader,
  account: string,
): Promise<AccountDeviceState | undefined> {
  return (await deviceStates.get(tx, account))?.state;
}

/**
 * Reads, verifies and stores the own state, over a device or account session.
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function resolveOwnState(
  core: Core,
  connection: RelayConnection,
  { account, signal }: { readonly account: string; readonly signal: AbortSignal },
): Promise<AccountDeviceState> {
  const answer = await connection.call(method, { account }, { signal });
  const state = verifiedState(core.network, answer, account);
  await core.store.write((tx) => adoptState(tx, state, core.clock.milliseconds()));
  return state;
}

/**
 * Reads the own state as {@link resolveOwnState}. If the home relay has an older one, because its
 * storage was put back to a backup, the stored one is published again: it is signed already, so
 * that no account key is needed, and a device that was removed since is out again (03 §4).
 *
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function syncOwnState(
  core: AccountCore,
  connection: RelayConnection,
  signal: AbortSignal,
): Promise<void> {
  const { account, store } = core;
  try {
    await resolveOwnState(core, connection, { account, signal });
  } catch (error) {
    if (!(error instanceof RelayMisbehaviour) || error.reason !== 'lower_revision') throw error;
    const known = await store.read((tx) => knownState(tx, account));
    if (known === undefined) throw error;
    await connection.call('device.state.publish', known, { signal }).catch((cause: unknown) => {
      throw isRefusal(cause) ? error : cause;
    });
    await resolveOwnState(core, connection, { account, signal });
  }
}

/**
 * Reads another account's state: with a signed query if there is a grant or invite, else publicly.
 * The signer of an invite must be one of the currently valid devices (03 §5.7).
 *
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function resolveState(
  core: AccountCore,
  account: string,
  { authorization, signal }: { readonly authorization?: Authorization; signal: AbortSignal },
): Promise<AccountDeviceState> {
  const { network, clock, store } = core;
  const connection = await core.home();
  const query = async () =>
    authorization === undefined
      ? { account }
      : signDeviceStateQuery(network, core.device, {
          account,
          authorization,
          signer_certificate: await core.certificate(),
          created_at: connection.relayClock.now(),
        });
  const answer = await withRelayClock(connection, async () =>
    connection.call(method, await query(), { signal }),
  );
  const state = verifiedState(network, answer, account);
  if (authorization !== undefined && !isGrant(network, authorization)) {
    checkRelayAnswer('invite_signer_missing', method, () =>
      verifyInvite(network, authorization, { state, now: unixSeconds(clock), inviter: account }),
    );
  }
  await store.write((tx) => adoptState(tx, state, clock.milliseconds()));
  return state;
}

/** Retries a request once with the relay's clock after `clock_skew` (03 §5.6). */
async function withRelayClock<T>(
  connection: RelayConnection,
  request: () => Promise<T>,
): Promise<T> {
  try {
    return await request();
  } catch (error) {
    if (!isRefusal(error, 'clock_skew')) throw error;
    connection.relayClock.adopt();
    return await request();
  }
}

/**
 * Returns the certificates of an account's currently valid devices.
 * @throws ClientError `no_recipient_device`
 */
export function requireCurrentDevices(core: Core, state: AccountDeviceState): DeviceCertificate[] {
  const devices = [...currentDevices(core.network, state, unixSeconds(core.clock)).values()];
  if (devices.length === 0) {
    throw new ClientError(
      'no_recipient_device',
      `${state.account} has no valid device: try again after one is renewed`,
    );
  }
  return devices;
}
