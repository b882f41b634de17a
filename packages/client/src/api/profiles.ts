import type { AccountProfile, ProfileFields } from '@posthouse/protocol';
import { publishProfile, resolveProfile } from '../accounts/profiles.ts';
import type { AccountCore } from '../core.ts';
import { type Abortable, signalOf } from './options.ts';

/** Profiles, the own one and others'. */
export class Profiles {
  readonly #core: AccountCore;

  constructor(core: AccountCore) {
    this.#core = core;
  }

  /** Publishes the own profile, whole: what is left out is not in it any more. */
  publish(
    facts: Omit<ProfileFields, 'account' | 'updated_at'>,
    options: Abortable = {},
  ): Promise<AccountProfile> {
    return publishProfile(this.#core, facts, signalOf(options));
  }

  /** An account's profile, verified; `undefined` where it has none. */
  resolve(account: string, options: Abortable = {}): Promise<AccountProfile | undefined> {
    return resolveProfile(this.#core, account, signalOf(options));
  }
}
