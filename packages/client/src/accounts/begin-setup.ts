/** Decides what a set-up does - a new account, another device, a recovery - and stores it (03 §11). */
import type { AccountDeviceState, AccountSigner, DeviceCertificate } from '@posthouse/protocol';
import type { VerifiedRelay } from '../connect/discovery.ts';
import type { Core } from '../core.ts';
import type { StoreReader } from '../store/index.ts';
import {
  accountKeys,
  ClientError,
  Collection,
  canonicalJson,
  certificateLead,
  certificateLifetime,
  deviceKeyBytes,
  deviceKeys,
  deviceSigner,
  deviceStates,
  encodeBase64url,
  nextState,
  ownCertificates,
  ownKey,
  ownRecords,
  randomFraction,
  routes,
  signDeviceCertificate,
  unixSeconds,
} from '../taken.ts';
import { findRoute } from './existing-account.ts';

export interface SetUpOptions {
  /** Signs for the account: with a key in memory, or through a wallet. */
  readonly signer: AccountSigner;
  /** Whether this call drew the key, so that no account with it can exist. */
  readonly isNewKey: boolean;
  /** Whether the app says that it has just made the key: the relays that answer decide. */
  readonly isMadeNow?: boolean | undefined;
  /** 32 bytes to be stored, so that later account operations need no key. */
  readonly keepKey?: Uint8Array | undefined;
  /** The future home relay; a random active one of the registry by default. */
  readonly relayId?: string | undefined;
  /** Of an invite to the home relay. */
  readonly inviteCode?: string | undefined;
  /**
   * Removes all existing devices: for an account without its old relay and devices (03 §11.3).
   * Nothing else does.
   */
  readonly recover?: boolean | undefined;
  readonly signal: AbortSignal;
}

/** A set-up in progress: key `own`. The signed objects are stored for an unchanged retry. */
export interface SetupRecord {
  readonly account: string;
  readonly relayId: string;
  readonly certificate: DeviceCertificate;
  /** The state to be staged; absent if the device joins an existing account. */
  readonly state?: AccountDeviceState;
  /** Whether other devices of the account are removed. */
  readonly recover: boolean;
  /** Set after the relay failed before it was sent a route: the next call may choose another one. */
  readonly isOpen?: true;
  /** Set before a request leaves that takes effect at a relay that is the home already. */
  readonly isSent?: true;
}
export type CreateRecord = SetupRecord & { readonly state: AccountDeviceState };

export const setups = new Collection<SetupRecord>('setup');

/** Accounts whose key was drawn in this store, so that others hardly have it. Key: account. */
const drawnKeys = new Collection<true>('drawn-keys');

/** @throws ClientError `already_set_up` */
export async function requireNoAccount(tx: StoreReader): Promise<void> {
  if ((await ownRecords.get(tx, ownKey)) === undefined) return;
  throw new ClientError('already_set_up', 'this store already holds an account: use another store');
}

/**
 * Returns a set-up that goes on, as it is stored.
 * @throws ClientError `already_set_up`, `cancelled` if another program ended or discarded it
 */
export async function requireBegun(
  tx: StoreReader,
  { certificate }: SetupRecord,
): Promise<SetupRecord> {
  await requireNoAccount(tx);
  const begun = await setups.get(tx, ownKey);
  if (begun !== undefined && canonicalJson(begun.certificate) === canonicalJson(certificate)) {
    return begun;
  }
  throw new ClientError('cancelled', 'the set-up was discarded meanwhile: begin again');
}

/** Stores that a request leaves that may take effect at once. @throws ClientError as {@link requireBegun} */
export async function markSent(core: Core, record: SetupRecord): Promise<void> {
  await core.store.write(async (tx) => {
    await setups.put(tx, ownKey, { ...(await requireBegun(tx, record)), isSent: true });
  });
}

/**
 * Discards a set-up or a requested device, with its keys. An account that exists stays.
 *
 * @param options.evenIfSent also one that may have taken effect
 * @throws ClientError `already_set_up`, `already_sent`
 */
export async function discardSetUp(
  core: Core,
  { evenIfSent = false }: { readonly evenIfSent?: boolean | undefined },
): Promise<void> {
  await core.store.write(async (tx) => {
    await requireNoAccount(tx);
    const begun = await setups.get(tx, ownKey);
    // A store without an account has drafts of its own set-up only.
    const hasDraft = (await routes.list(tx)).some(({ value }) => value.draft !== undefined);
    if ((hasDraft || begun?.isSent) && !evenIfSent) {
      throw new ClientError(
        'already_sent',
        'the set-up may have taken effect: call `setUp` again to finish it, or save the account ' +
          'key and pass `evenIfSent`',
      );
    }
    if (begun !== undefined) await drawnKeys.delete(tx, begun.account);
    await accountKeys.delete(tx, 'account');
    for (const { name } of [setups, ownCertificates]) await tx.delete(name, ownKey);
    await deviceKeys.delete(tx, 'device');
  });
}

/** Returns the set-up in progress, if any. @throws ClientError if it is of another account */
export async function setupInProgress(
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

/**
 * Whether a call goes on with what was begun: the same relay, and the same decision about the account's
 * devices. A join always asks where the account is: nothing of it is stored.
 */
export function continues(core: Core, begun: SetupRecord, options: SetUpOptions): boolean {
  const { recover = false, relayId = begun.relayId } = options;
  return (
    begun.state !== undefined &&
    begun.isOpen === undefined &&
    begun.relayId === relayId &&
    begun.recover === recover &&
    isCurrent(core, begun.certificate)
  );
}

function isCurrent(core: Core, { expires_at: end }: DeviceCertificate): boolean {
  return end > unixSeconds(core.clock);
}

/** Decides what to do and stores it; the device of a set-up that was begun stays the same. */
export async function beginSetup(
  core: Core,
  begun: SetupRecord | undefined,
  options: SetUpOptions & { readonly mustExist?: boolean },
): Promise<SetupRecord> {
  const { signer, keepKey, isNewKey, recover = false, signal } = options;
  const { account } = signer;
  // A relay that does not answer, or lies, is found out before anything is stored.
  if (options.relayId !== undefined) await core.discovery.find(options.relayId, signal);
  const { isOwnKey, kept } = await core.store.read(async (tx) => ({
    isOwnKey: options.isMadeNow === true || (await drawnKeys.get(tx, account)) === true,
    kept: begun && (await deviceKeys.get(tx, 'device')),
  }));
  const question = { account, first: options.relayId, isOwnKey, signal };
  const shuffle = <T>(items: T[]) => shuffled(core, items);
  const route = recover || isNewKey ? undefined : await findRoute(core, { ...question, shuffle });
  if (route === undefined && options.mustExist) {
    throw new ClientError(
      'no_relay',
      'no relay tells where the account is: try again; if all its devices are lost, pass `recover`',
    );
  }
  const keys = kept ?? {
    signingSeed: encodeBase64url(core.random(32)),
    encryptionKey: encodeBase64url(core.random(32)),
  };
  const now = unixSeconds(core.clock);
  const certificate =
    kept !== undefined && begun !== undefined && isCurrent(core, begun.certificate)
      ? begun.certificate
      : await signDeviceCertificate(core.network, {
          account: signer,
          device: deviceSigner(core.network, deviceKeyBytes(keys)),
          notBefore: now - certificateLead,
          expiresAt: now - certificateLead + certificateLifetime,
        });
  const relayId = route?.relay_id ?? options.relayId ?? (await relayForNewcomer(core, options));
  const record: SetupRecord = {
    account,
    relayId,
    certificate,
    recover,
    ...(route === undefined && {
      state: await firstState(core, signer, { certificate, begun }),
    }),
  };
  return await core.store.write(async (tx) => {
    // Another process may have begun or finished meanwhile; its keys must not be lost.
    await requireNoAccount(tx);
    const other = await setupInProgress(tx, signer);
    if (JSON.stringify(other) !== JSON.stringify(begun)) {
      if (other !== undefined && continues(core, other, options)) return other;
      throw new ClientError(
        'already_set_up',
        'another program sets this store up: use another store',
      );
    }
    await deviceKeys.put(tx, 'device', { ...keys, account });
    if (keepKey !== undefined) await accountKeys.put(tx, 'account', encodeBase64url(keepKey));
    if (isNewKey) await drawnKeys.put(tx, account, true);
    await ownCertificates.put(tx, ownKey, certificate);
    await setups.put(tx, ownKey, record);
    return record;
  });
}

/**
 * Signs the first state, or returns the one that was signed before; its revision is above every known one
 * (03 §11.3).
 */
async function firstState(
  core: Core,
  signer: AccountSigner,
  facts: { readonly certificate: DeviceCertificate; readonly begun: SetupRecord | undefined },
): Promise<AccountDeviceState> {
  const { certificate, begun } = facts;
  const row = await core.store.read((tx) => deviceStates.get(tx, signer.account));
  const known = row?.state.revision ?? -1;
  const before = begun?.state?.revision ?? -1;
  if (begun?.state !== undefined && begun.certificate === certificate && before > known) {
    return begun.state;
  }
  const current = Math.max(known, before);
  return await nextState(core, signer, {
    current: current < 0 ? undefined : current,
    certificates: [certificate],
  });
}

/** Signs a state above what is known by now, and stores it in place of the record's. */
export async function raisedState(
  core: Core,
  record: CreateRecord,
  signer: AccountSigner,
): Promise<AccountDeviceState> {
  const { certificate } = record;
  const state = await firstState(core, signer, { certificate, begun: record });
  await core.store.write(async (tx) => {
    await setups.put(tx, ownKey, { ...(await requireBegun(tx, record)), state });
  });
  return state;
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
