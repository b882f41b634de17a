/** A program that can go offline, restart on its store, and lose requests or answers. */
import { type Account, type Client, MemoryStore, type Store } from '../../src/index.ts';
import { NodeTransport } from '../../src/node.ts';
import type { RelayWithClients } from './relay-with-clients.ts';
import { impatient } from './restartable-client.ts';
import { lostRequest, type Rule, SteeredTransport } from './steered-transport.ts';

/** The calls that a client without a network cannot make. */
const everyCall = [
  'relay.descriptor',
  'relay.info',
  'auth.challenge',
  'message.send',
  'group.message.send',
  'channel.post',
];

/**
 * @example
 * const ann = await OfflineProgram.start(world);
 * ann.offline();
 * await ann.account.messages.post(bob.id, { text: 'later' });
 * ann.online();
 * await (await ann.again()).sync();
 */
export class OfflineProgram {
  readonly steered: SteeredTransport;
  readonly store: Store;
  account: Account;
  readonly #world: RelayWithClients;
  #client: Client;

  private constructor(
    world: RelayWithClients,
    parts: { steered: SteeredTransport; store: Store; client: Client; account: Account },
  ) {
    this.#world = world;
    this.steered = parts.steered;
    this.store = parts.store;
    this.#client = parts.client;
    this.account = parts.account;
  }

  static async start(world: RelayWithClients): Promise<OfflineProgram> {
    const steered = new SteeredTransport(new NodeTransport({ ca: world.ca }));
    const store = new MemoryStore();
    const client = await world.client({ store, transport: steered, ...impatient });
    return new OfflineProgram(world, { steered, store, client, account: await client.setUp() });
  }

  /** Applies a rule to the requests of some methods. */
  rule(methods: readonly string[], rule: Rule): void {
    for (const method of methods) this.steered.rules.set(method, rule);
  }

  offline(): void {
    this.rule(everyCall, lostRequest);
  }

  /** Ends all rules. */
  online(): void {
    this.steered.rules.clear();
  }

  /** Ends the program and starts it again on its store. */
  async again(): Promise<Account> {
    await this.#client[Symbol.asyncDispose]();
    const { store, steered: transport } = this;
    this.#client = await this.#world.client({ store, transport, ...impatient });
    this.account = await this.#client.account();
    return this.account;
  }
}

/** The relay answers with an error instead of carrying a request out. */
export function refused(code: string, status = 400): Rule {
  const body = new TextEncoder().encode(JSON.stringify({ code, message: 'of the test' }));
  return async () => ({ status, contentType: 'application/json', body });
}

/** The relay answers the first request with an error instead of carrying it out. */
export function refusedOnce(status: number, code: string): Rule {
  let isRefused = false;
  return async (send) => {
    if (isRefused) return await send();
    isRefused = true;
    return await refused(code, status)(send);
  };
}
