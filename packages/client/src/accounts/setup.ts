/** Sets an account up on a relay: a new account, another device, or a recovery (03 §11). */
import type { AccountDeviceState, AccountSigner } from '@posthouse/protocol';
import type { RelayConnection } from '../connect/relay-connection.ts';
import type { Core } from '../core.ts';
import type { StoreWriter } from '../store/index.ts';
import {
  accountIdentity,
  adoptState,
  askOwnDevices,
  ClientError,
  canonicalJson,
  contactsWait,
  currentDevices,
  deriveDeviceId,
  draftFor,
  isClientError,
  isRefusal,
  makeRouteDraft,
  ownKey,
  ownRecords,
  publishDevices,
  publishRoute,
  RelayUnreachable,
  resolveRouteAt,
  routes,
  skipBuilding,
  stageState,
  unixSeconds,
  withCertificate,
} from '../taken.ts';
import {
  beginSetup,
  type CreateRecord,
  continues,
  markSent,
  raisedState,
  requireBegun,
  requireNoAccount,
  type SetUpOptions,
  type SetupRecord,
  setupInProgress,
  setups,
} from './begin-setup.ts';
import { findState } from './existing-account.ts';

/**
 * Sets this store's device up: as the first device of a new account, or as another device of an
 * account that has a route. After a failure it can be called again and continues where it stopped; with
 * another relay, or another `recover`, it begins anew with the same device.
 * It ends only after every answer was verified and stored (03 §11.1).
 *
 * @throws ClientError, RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function setUp(core: Core, options: SetUpOptions): Promise<void> {
  const begun = await core.store.read(async (tx) => {
    await requireNoAccount(tx);
    return await setupInProgress(tx, options.signer);
  });
  const goesOn = begun !== undefined && continues(core, begun, options);
  const record = goesOn ? begun : await beginSetup(core, begun, options);
  if (record.state !== undefined) {
    if (await createAccount(core, { ...record, state: record.state }, options)) return;
    // A relay showed that the account has other devices, whatever was answered before.
    const joining = { ...options, isNewKey: false, recover: false, mustExist: true };
    return await joinAccount(core, await beginSetup(core, record, joining), options);
  }
  await joinAccount(core, record, options);
}

/**
 * Stages the state, then publishes the route that makes both take effect (03 §11.1).
 * @returns whether it did; `false` if the account has other devices that stay
 */
async function createAccount(
  core: Core,
  record: CreateRecord,
  options: SetUpOptions,
): Promise<boolean> {
  const { signer, signal, inviteCode, isNewKey } = options;
  const { recover, relayId } = record;
  const identity = accountIdentity(core.network, signer, inviteCode);
  await using connection = core.connect(relayId, identity);
  try {
    const found = isNewKey ? undefined : await stateInForce(core, connection, { record, signal });
    if (found?.mustStay) return false;
    const state = found?.isHigher ? await raisedState(core, record, signer) : record.state;
    const mayBeHome = recover || found !== undefined;
    if (mayBeHome) await markSent(core, record);
    const options = { state, signer, mayBeHome, recover, signal };
    await stageAndRoute(core, connection, { ...options, record });
    await core.store.write((tx) => finishSetup(core, tx, { record, state, signer }));
    return true;
  } catch (error) {
    if (!recover && isRefusal(error, 'stale_state')) return false;
    throw await afterFailure(core, record, error);
  }
}

/**
 * Makes a relay the account's home: stages the state there, then publishes the route that makes
 * both take effect (03 §11.1). Can be repeated after any failure.
 *
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
async function stageAndRoute(
  core: Core,
  connection: RelayConnection,
  options: {
    readonly state: AccountDeviceState;
    readonly signer: AccountSigner;
    /** Whether the relay may be the account's home already, and so accept the state at once. */
    readonly mayBeHome: boolean;
    /** Whether the route replaces an earlier one, of which the account's devices told nothing. */
    readonly recover: boolean;
    readonly record: SetupRecord;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { state, signer, record, recover, signal } = options;
  const inTransaction = async (tx: StoreWriter) => void (await requireBegun(tx, record));
  const known = await core.store.read((tx) => routes.get(tx, state.account));
  // A draft that was sent may have made the relay the home, and the state authoritative.
  const mayBeHome = options.mayBeHome || draftFor(connection.relayId, known) !== undefined;
  await stageState(connection, state, { mayBeHome, signal });
  const draft = await makeRouteDraft(core, connection, { signer, inTransaction });
  try {
    await publishRoute(core, connection, { draft, signer, signal });
  } catch (error) {
    if (!recover || !isRefusal(error, 'stale_state')) throw error;
    // A recovery knows no earlier route, whose revision chance may have raised above this one's.
    await resolveRouteAt(core, connection.relayId, { account: state.account, signal });
    const higher = await makeRouteDraft(core, connection, { signer, refused: draft });
    await publishRoute(core, connection, { draft: higher, signer, signal });
  }
}

/** What an account session at the chosen relay shows of the account, if it is at home there. */
interface StateInForce {
  /** Whether other devices of the account are to stay. */
  readonly mustStay: boolean;
  /** Whether it is above the one to be staged. */
  readonly isHigher: boolean;
}

async function stateInForce(
  core: Core,
  connection: RelayConnection,
  { record, signal }: { readonly record: CreateRecord; readonly signal: AbortSignal },
): Promise<StateInForce | undefined> {
  const { account, certificate, recover, state } = record;
  let found: AccountDeviceState | 'elsewhere' | undefined;
  try {
    found = await findState(core, connection, { account, signal });
  } catch (error) {
    // A recovery replaces what the relay has, whatever that is.
    if (!recover || !isClientError(error) || isClientError(error, 'relay_unreachable')) throw error;
  }
  if (found === undefined) return undefined;
  if (found === 'elsewhere') return recover ? undefined : { mustStay: true, isHigher: false };
  const isOwn = canonicalJson(found) === canonicalJson(state);
  const deviceId = deriveDeviceId(core.network, certificate);
  // Devices that came after this recovery took effect are no old ones.
  const isIn =
    record.isSent === true &&
    found.certificates.some((item) => deriveDeviceId(core.network, item) === deviceId);
  return {
    mustStay: !isOwn && (isIn || !recover),
    isHigher: !isOwn && found.revision >= state.revision,
  };
}

/** Stores what a failure leaves of a set-up, and returns the error to be thrown. */
async function afterFailure(core: Core, record: CreateRecord, error: unknown): Promise<unknown> {
  const { account, relayId } = record;
  // The relay has nothing of the account: the next call may name another one.
  if (isClientError(error, 'registration_refused')) {
    await core.store.write((tx) => setups.delete(tx, ownKey));
  }
  const isUnusable = (['relay_unreachable', 'no_relay', 'relay_misbehaviour'] as const).some(
    (code) => isClientError(error, code),
  );
  if (!isUnusable) return error;
  const isRouteSent = await core.store.write(async (tx) => {
    if (draftFor(relayId, await routes.get(tx, account)) !== undefined) return true;
    const begun = await setups.get(tx, ownKey);
    if (begun !== undefined) await setups.put(tx, ownKey, { ...begun, isOpen: true });
    return false;
  });
  return isRouteSent ? withAdvice(error, relayId) : error;
}

/** Adds what a person can do to the error of a relay that is away. */
function withAdvice(error: unknown, relayId: string): unknown {
  if (!(error instanceof RelayUnreachable)) return error;
  const { message, outcomeUnknown, cause } = error;
  const advice =
    `the set-up goes on at ${relayId}; if that is gone, name another relay and pass ` +
    '`recover`, which removes all other devices';
  return new RelayUnreachable(`${message}; ${advice}`, { outcomeUnknown, cause });
}

/** Adds this device to the state of an account that exists (03 §11.2). */
async function joinAccount(
  core: Core,
  record: SetupRecord,
  { signer, signal }: SetUpOptions,
): Promise<void> {
  const { relayId } = record;
  await using connection = core.connect(relayId, accountIdentity(core.network, signer));
  await markSent(core, record);
  const state = await publishDevices(core, connection, {
    signer,
    signal,
    change: (current) => withCertificate(core, current, record.certificate),
  }).catch((error: unknown) => {
    throw withAdvice(error, relayId);
  });
  await core.store.write((tx) => finishSetup(core, tx, { record, state, signer }));
}

async function finishSetup(
  core: Core,
  tx: StoreWriter,
  done: {
    readonly record: SetupRecord;
    readonly state: AccountDeviceState;
    readonly signer: AccountSigner;
  },
): Promise<void> {
  const { record, state, signer } = done;
  const deviceId = deriveDeviceId(core.network, record.certificate);
  const current = currentDevices(core.network, state, unixSeconds(core.clock));
  if (!current.has(deviceId)) {
    throw new ClientError('invalid_input', 'the new device is not valid now: check the clock');
  }
  // Another program may have ended the same set-up.
  if ((await ownRecords.get(tx, ownKey))?.deviceId === deviceId) return;
  await requireBegun(tx, record);
  await adoptState(tx, state, core.clock.milliseconds());
  await skipBuilding(tx);
  await ownRecords.put(tx, ownKey, {
    account: signer.account,
    publicKey: signer.publicKey,
    deviceId,
    awaitsContactsUntil: current.size > 1 ? unixSeconds(core.clock) + contactsWait : 0,
  });
  if (current.size > 1) await askOwnDevices(tx);
  await setups.delete(tx, ownKey);
}
