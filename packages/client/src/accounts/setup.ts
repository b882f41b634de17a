/** Sets an account up on a relay: a new account, another device, or a recovery (03 §11). */
import {
  type AccountDeviceState,
  type AccountSigner,
  activeRelays,
  currentDevices,
  type DeviceCertificate,
  deriveDeviceId,
  deviceSigner,
  encodeBase64url,
  type FinalRoute,
  signDeviceCertificate,
} from '@posthouse/protocol';
import type { VerifiedRelay } from '../connect/discovery.ts';
import { accountIdentity } from '../connect/session.ts';
import { skipBuilding } from '../conversations/build-conversations.ts';
import type { Core } from '../core.ts';
import { randomFraction, unixSeconds } from '../environment.ts';
import { ClientError, isClientError, isRefusal } from '../errors.ts';
import { Collection } from '../store/collection.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';
import { enqueueTask } from '../sync/tasks.ts';
import {
  accountKeys,
  deviceKeys,
  deviceStates,
  ownCertificates,
  ownKey,
  ownRecords,
} from './account-rows.ts';
import { adoptState } from './device-states.ts';
import { resolveRouteAt } from './home-relay.ts';
import { nextState, publishDevices, withCertificate } from './publish-devices.ts';
import { stageAndRoute } from './publish-route.ts';
import { deviceKeyBytes } from './stored-keys.ts';

export interface SetUpOptions {
  /** Signs for the account: with a key in memory, or through a wallet. */
  readonly signer: AccountSigner;
  /** Whether the key was just made, so that no account with it can exist. */
  readonly isNewKey?: boolean;
  /** 32 bytes to be stored, so that later account operations need no key. */
  readonly keepKey?: Uint8Array | undefined;
  /** The future home relay; a random active one of the registry by default. */
  readonly relayId?: string | undefined;
  /** Of an invite to the home relay. */
  readonly inviteCode?: string | undefined;
  /**
   * Removes all existing devices: for an account without its old relay and devices (03 §11.3).
   */
  readonly recover?: boolean | undefined;
  readonly signal: AbortSignal;
}

/** A set-up in progress: key `own`. The signed objects are stored for an unchanged retry. */
interface SetupRecord {
  readonly account: string;
  readonly relayId: string;
  readonly certificate: DeviceCertificate;
  /** The state to be staged; absent if the device joins an existing account. */
  readonly state?: AccountDeviceState;
  /** Whether this relay may have been the account's home before. */
  readonly recover: boolean;
}
const setups = new Collection<SetupRecord>('setup');

/** Seconds a device certificate is signed for. */
export const certificateLifetime = 31_104_000;
/** Seconds a new device waits for the contacts of the other devices. */
export const contactsWait = 604_800;
/** Seconds a certificate begins before now: relays' clocks may be that late. */
export const certificateLead = 86_400;

/**
 * Sets this store's device up: as the first device of a new account, or as another device of an
 * account that has a route. After a failure it can be called again and continues where it stopped.
 * It ends only after every answer was verified and stored (03 §11.1).
 *
 * @throws ClientError, RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function setUp(core: Core, options: SetUpOptions): Promise<void> {
  const { signer } = options;
  if ((await core.store.read((tx) => ownRecords.get(tx, ownKey))) !== undefined) {
    throw new ClientError(
      'already_set_up',
      'this store already holds an account: use another store',
    );
  }
  const begun = await core.store.read((tx) => setupInProgress(tx, signer));
  const record = begun ?? (await beginSetup(core, options));
  if (record.state === undefined) await joinAccount(core, record, options);
  else await createAccount(core, { ...record, state: record.state }, options);
}

/** Returns the set-up in progress, if any. @throws ClientError if it is of another account */
async function setupInProgress(
  tx: StoreReader,
  signer: AccountSigner,
): Promise<SetupRecord | undefined> {
  const begun = await setups.get(tx, ownKey);
  if (begun !== undefined && begun.account !== signer.account) {
    throw new ClientError(
      'already_set_up',
      `a set-up of ${begun.account} is in progress here: continue it, or use another store`,
    );
  }
  return begun;
}

async function beginSetup(core: Core, options: SetUpOptions): Promise<SetupRecord> {
  const { signer, keepKey, isNewKey, recover = false } = options;
  // One that does not answer, or lies, is found out before anything is stored.
  if (isNewKey && options.relayId !== undefined) {
    await core.discovery.find(options.relayId, options.signal);
  }
  const route = recover || isNewKey ? undefined : await existingRoute(core, options);
  const keys = {
    signingSeed: encodeBase64url(core.random(32)),
    encryptionKey: encodeBase64url(core.random(32)),
  };
  const now = unixSeconds(core.clock);
  const certificate = await signDeviceCertificate(core.network, {
    account: signer,
    device: deviceSigner(core.network, deviceKeyBytes(keys)),
    notBefore: now - certificateLead,
    expiresAt: now - certificateLead + certificateLifetime,
  });
  const relayId = route?.relay_id ?? options.relayId ?? (await relayForNewcomer(core, options));
  const record: SetupRecord = {
    account: signer.account,
    relayId,
    certificate,
    recover,
    ...(route === undefined && { state: await firstState(core, signer, certificate) }),
  };
  return await core.store.write(async (tx) => {
    // Another process may have begun or finished meanwhile; its keys must not be lost.
    if ((await ownRecords.get(tx, ownKey)) !== undefined) {
      throw new ClientError(
        'already_set_up',
        'this store already holds an account: use another store',
      );
    }
    const other = await setupInProgress(tx, signer);
    if (other !== undefined) return other;
    await deviceKeys.put(tx, 'device', keys);
    if (keepKey !== undefined) await accountKeys.put(tx, 'account', encodeBase64url(keepKey));
    await ownCertificates.put(tx, ownKey, certificate);
    await setups.put(tx, ownKey, record);
    return record;
  });
}

/** Signs the first state; in a recovery its revision is above every known one (03 §11.3). */
async function firstState(
  core: Core,
  signer: AccountSigner,
  certificate: DeviceCertificate,
): Promise<AccountDeviceState> {
  const known = await core.store.read((tx) => deviceStates.get(tx, signer.account));
  return await nextState(core, signer, {
    current: known?.state.revision,
    certificates: [certificate],
  });
}

async function anyRelay(core: Core, signal: AbortSignal): Promise<string> {
  return (await core.discovery.choose(signal, (items) => shuffled(core, items))).relayId;
}

/** Chooses any relay that takes new accounts without a right, unless a code is given (03 §4.3). */
async function relayForNewcomer(
  core: Core,
  { inviteCode, signal }: Pick<SetUpOptions, 'inviteCode' | 'signal'>,
): Promise<string> {
  const isWanted = ({ descriptor }: VerifiedRelay) =>
    inviteCode !== undefined ||
    !descriptor.capabilities?.some((name) => name.startsWith('posthouse.registration.'));
  const shuffle = <T>(items: T[]) => shuffled(core, items);
  return (await core.discovery.choose(signal, shuffle, isWanted)).relayId;
}

function shuffled<T>(core: Core, items: T[]): T[] {
  return items
    .map((item) => ({ item, rank: randomFraction(core.random) }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ item }) => item);
}

/**
 * Asks the chosen relay for the account's route; `undefined` if there is none. An existing key may
 * have an account elsewhere, and a wrong "none" of one relay would cost it all its devices: the
 * other relays of the registry are asked too.
 */
async function existingRoute(core: Core, options: SetUpOptions): Promise<FinalRoute | undefined> {
  const chosen = options.relayId ?? (await anyRelay(core, options.signal));
  const route = await routeKnownTo(core, chosen, options);
  if (route !== undefined) return route;
  for (const { relay_id: relayId } of await activeRelays(core.registry, options)) {
    if (relayId === chosen) continue;
    try {
      const found = await routeKnownTo(core, relayId, options);
      if (found !== undefined) return found;
    } catch (error) {
      if (!isClientError(error)) throw error;
    }
  }
  return undefined;
}

async function routeKnownTo(
  core: Core,
  relayId: string,
  { signer, signal }: SetUpOptions,
): Promise<FinalRoute | undefined> {
  try {
    return await resolveRouteAt(core, relayId, { account: signer.account, signal });
  } catch (error) {
    if (isRefusal(error, 'not_found', 'route_not_found')) return undefined;
    throw error;
  }
}

type SigningCall = Pick<SetUpOptions, 'signer' | 'signal' | 'inviteCode'>;

/** Stages the state, then publishes the route that makes both take effect (03 §11.1). */
async function createAccount(
  core: Core,
  record: SetupRecord & { readonly state: AccountDeviceState },
  { signer, signal, inviteCode }: SigningCall,
): Promise<void> {
  const identity = accountIdentity(core.network, signer, inviteCode);
  await using connection = core.connect(record.relayId, identity);
  const { state, recover: mayBeHome } = record;
  try {
    await stageAndRoute(core, connection, { state, signer, mayBeHome, signal });
  } catch (error) {
    // The relay has nothing of the account: the next try may name another one.
    if (isClientError(error, 'registration_refused')) {
      await core.store.write((tx) => setups.delete(tx, ownKey));
    }
    throw error;
  }
  await core.store.write((tx) => finishSetup(core, tx, { record, state, signer }));
}

/** Adds this device to the state of an account that exists (03 §11.2). */
async function joinAccount(
  core: Core,
  record: SetupRecord,
  { signer, signal }: SigningCall,
): Promise<void> {
  await using connection = core.connect(record.relayId, accountIdentity(core.network, signer));
  const state = await publishDevices(core, connection, {
    signer,
    signal,
    change: (current) => withCertificate(core, current, record.certificate),
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
    throw new ClientError(
      'invalid_input',
      'the new device is not valid now: check the clock of this machine',
    );
  }
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

/** Has a new device ask the account's other devices for what they know (03 §11.2, 05 §17.1). */
export async function askOwnDevices(tx: StoreWriter): Promise<void> {
  await enqueueTask(tx, { kind: 'request-snapshot' });
  await enqueueTask(tx, { kind: 'request-groups' });
}
