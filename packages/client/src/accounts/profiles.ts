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
import {
  ClientError,
  checkRelayAnswer,
  isRefusal,
  RelayMisbehaviour,
  RelayUnreachable,
} from '../errors.ts';
import { profiles } from './account-rows.ts';

const method = 'profile.resolve';

/**
 * Reads an account's profile; `undefined` if there is none. A profile gives no right to list devices
 * or to deliver messages.
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
  await core.store.write((tx) => profiles.put(tx, account, answer));
  return profile;
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
    updated_at: Math.max(home.relayClock.now(), last?.updated_at ?? 0),
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
  await core.store.write((tx) => profiles.put(tx, core.account, kept));
  return profile;
}

function signOrInvalidInput(core: AccountCore, facts: ProfileFields): AccountProfile {
  try {
    return signProfile(core.network, core.device, facts);
  } catch (cause) {
    if (!(cause instanceof ProtocolError)) throw cause;
    throw new ClientError('invalid_input', cause.message, { cause });
  }
}
