import type { AccountProfile, ProfileFields } from '@posthouse/protocol';
import { publishProfile, resolveProfile } from '../accounts/profiles.ts';
import type { AccountCore } from '../core.ts';
import { type Abortable, signalOf } from './options.ts';

/**
 * Publishes the own profile and reads profiles of other accounts.
 *
 * @example
 * await account.profiles.publish({ nickname: 'Ann', public_discovery: true });
 */
export class Profiles {
  readonly #core: AccountCore;

  constructor(core: AccountCore) {
    this.#core = core;
  }

  /**
   * Publishes the own profile as a whole: members that are left out are removed.
   *
   * @throws ClientError `invalid_input`; RelayRefused, RelayUnreachable, RelayMisbehaviour
   * @example
   * const profile = await account.profiles.publish({ nickname: 'Ann', public_discovery: false });
   */
  publish(
    fields: Omit<ProfileFields, 'account' | 'updated_at'>,
    options: Abortable = {},
  ): Promise<AccountProfile> {
    return publishProfile(this.#core, fields, signalOf(options));
  }

  /**
   * Reads and verifies an account's profile; `undefined` if it has none. If the relay's profile is
   * older than one that was verified before, that one is returned.
   *
   * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
   * @example
   * const profile = await account.profiles.resolve(account.id);
   * console.log(profile?.nickname);
   */
  resolve(peer: string, options: Abortable = {}): Promise<AccountProfile | undefined> {
    return resolveProfile(this.#core, peer, signalOf(options));
  }
}
