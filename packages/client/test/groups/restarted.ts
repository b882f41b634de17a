/** People whose programs end, begin again, and do not try twice. */
import { type Account, type ClientOptions, MemoryStore, type Store } from '../../src/index.ts';
import type { LyingRelay } from '../support/lying-relay.ts';

/** One try only: an answer that is lost is lost. */
export const impatient = { prefer: 'http', retry: { attempts: 1, base: 1, cap: 1 } } as const;

/** What calls fail with whose answers are lost. */
export const unreachable = { code: 'relay_unreachable' };

/** The relay never hears of a call. */
export function block(relay: LyingRelay, method: string): void {
  relay.overHttp.set(method, (response) => response.destroy());
}

/** Somebody whose program ends and begins again with the same store. */
export class Restarted {
  readonly store: Store;
  readonly #relay: LyingRelay;
  account: Account;

  private constructor(relay: LyingRelay, store: Store, account: Account) {
    this.#relay = relay;
    this.store = store;
    this.account = account;
  }

  static async begin(
    relay: LyingRelay,
    store: Store = new MemoryStore(),
    options: Partial<ClientOptions> = {},
  ): Promise<Restarted> {
    const client = await relay.world.client({ store, ...impatient, ...options });
    return new Restarted(relay, store, await client.setUp());
  }

  async again(): Promise<Account> {
    const client = await this.#relay.world.client({ store: this.store, ...impatient });
    this.account = await client.account();
    return this.account;
  }
}
