/** Publishes the own profile, reads and verifies others (03 §7, §8). */
import {
  type AccountProfile,
  type ProfileFields,
  ProtocolError,
  type ResolvedProfile,
  signProfile,
  verifyDeviceCertificate,
  verifyProfile,
} from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import type { AccountCore } from '../core.ts';
import { unixSeconds } from '../environment.ts';
import {
  ClientError,
  checkRelayAnswer,
  isRefusal,
  RelayMisbehaviour,
  RelayUnreachable,
} from '../errors.ts';
import type { StoreWriter } from '../store/index.ts';
import { profiles } from './account-rows.ts';

const method = 'profile.resolve';

/** Seconds that a profile's time may be ahead of our clock for the profile to be stored. */
const futureTolerance = 300;

/**
 * Reads an account's profile; `undefined` if the relay has none. Of the relay's and the stored
 * profile the newer one is returned and stored: a relay may have an older one, because it was put
 * back to a backup or because it lies (03 §8). A profile gives no right to list devices or to
 * deliver messages.
 *
 * @throws RelayRefused, RelayUnreachable
 * @throws RelayMisbehaviour `wrong_account`, `invalid_certificate`, `invalid_profile`
 */
export async function resolveProfile(
  core: AccountCore,
  account: string,
  signal: AbortSignal,
): Promise<AccountProfile | undefined> {
  const home = await core.home();
  let answer: ResolvedProfile;
  try {
    answer = await home.call(method, { account }, { signal });
  } catch (error) {
    if (isRefusal(error, 'not_found')) return undefined;
    throw error;
  }
  const { profile, signer_certificate: certificate } = answer;
  if (profile.account !== account || certificate.account !== account) {
    throw new RelayMisbehaviour('wrong_account', 'profile of another account', { method });
  }
  checkRelayAnswer('invalid_certificate', method, () => {
    verifyDeviceCertificate(core.network, certificate);
  });
  checkRelayAnswer('invalid_profile', method, () =>
    verifyProfile(core.network, profile, certificate),
  );
  // Relays refuse a time ahead of their clock. Once stored, it would hide every profile until then.
  if (profile.updated_at > unixSeconds(core.clock) + futureTolerance) return profile;
  return await core.store.write((tx) => adoptProfile(tx, answer));
}

/**
 * Stores a verified profile unless a newer one is stored. With equal times the later answer counts,
 * as it does for relays (03 §7).
 *
 * @returns the profile that is stored afterwards
 */
async function adoptProfile(tx: StoreWriter, found: ResolvedProfile): Promise<AccountProfile> {
  const { account, updated_at } = found.profile;
  const known = await profiles.get(tx, account);
  if (known !== undefined && known.profile.updated_at > updated_at) return known.profile;
  await profiles.put(tx, account, found);
  return found.profile;
}

/** Returns the stored profile, without asking a relay. */
export async function knownProfile(
  core: AccountCore,
  account: string,
): Promise<AccountProfile | undefined> {
  return (await core.store.read((tx) => profiles.get(tx, account)))?.profile;
}

/**
 * Signs and publishes the own profile. After a lost answer it reads the relay's profile instead of
 * publishing again, which could replace a newer profile of another device (02 §7).
 *
 * @throws ClientError `invalid_input`; RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function publishProfile(
  core: AccountCore,
  facts: Omit<ProfileFields, 'account' | 'updated_at'>,
  signal: AbortSignal,
): Promise<AccountProfile> {
  const home = await core.home();
  const last = await knownProfile(core, core.account);
  const profile = signOrInvalidInput(core, {
    ...facts,
    account: core.account,
    // Above the last one, so that no relay can pass that one off as the newer of the two.
    updated_at: Math.max(home.relayClock.now(), (last?.updated_at ?? -1) + 1),
  });
  try {
    await home.call('profile.publish', profile, { signal, repeat: 'unsent' });
  } catch (error) {
    if (!(error instanceof RelayUnreachable) || !error.outcomeUnknown) throw error;
    const stored = await resolveProfile(core, core.account, signal);
    if (stored === undefined || canonicalJson(stored) !== canonicalJson(profile)) throw error;
  }
  const certificate = await core.certificate();
  const kept = { profile, signer_certificate: certificate };
  await core.store.write((tx) => adoptProfile(tx, kept));
  return profile;
}

/**
 * Publishes the own profile again if the home relay has an older one or none, because it was put back to
 * an earlier state (03 §7). Only the device that signed a profile may publish it unchanged, so it is
 * signed again.
 *
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function syncOwnProfile(core: AccountCore, signal: AbortSignal): Promise<void> {
  const known = await knownProfile(core, core.account);
  if (known === undefined) return;
  const home = await core.home();
  const answer = await home
    .call(method, { account: core.account }, { signal })
    .catch((error: unknown) => {
      if (!isRefusal(error, 'not_found')) throw error;
    });
  if (answer !== undefined && answer.profile.updated_at >= known.updated_at) return;
  await publishProfile(core, known, signal);
}

function signOrInvalidInput(core: AccountCore, facts: ProfileFields): AccountProfile {
  try {
    return signProfile(core.network, core.device, facts);
  } catch (cause) {
    if (!(cause instanceof ProtocolError)) throw cause;
    throw new ClientError('invalid_input', cause.message, { cause });
  }
}
