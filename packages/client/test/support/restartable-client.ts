/** Accounts whose program can restart with the same store, and that never retry. */
import { type Account, type ClientOptions, MemoryStore, type Store } from '../../src/index.ts';
import type { LyingRelay } from './lying-relay.ts';

/** A single attempt: a lost answer stays lost. */
export const impatient = { prefer: 'http', retry: { attempts: 1, base: 1, cap: 1 } } as const;

/** The error of a call whose answer is lost. */
export const unreachable = { code: 'relay_unreachable' };

/** Drops calls of these methods before they reach the relay. */
export function block(relay: LyingRelay, ...methods: readonly string[]): void {
  for (const method of methods) relay.overHttp.set(method, (response) => response.destroy());
}

/** An account whose program can restart with the same store. */
export class RestartableClient {
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
  ): Promise<RestartableClient> {
    const client = await relay.world.client({ store, ...impatient, ...options });
    return new RestartableClient(relay, store, await client.setUp());
  }

  async again(): Promise<Account> {
    const client = await this.#relay.world.client({ store: this.store, ...impatient });
    this.account = await client.account();
    return this.account;
  }
}
