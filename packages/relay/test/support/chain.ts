/** Relays of a network whose registry is the contract on a chain: nodes are fake, all else is real. */
import { join } from 'node:path';
import { FakeNode } from '../../../protocol/test/registry-chain/fake-node.ts';
import { systemClock } from '../../src/clock.ts';
import type { PartialConfig } from '../../src/config/index.ts';
import { devAuthority } from '../../src/tls/dev-ca.ts';
import { temporaryFolder } from './folder.ts';
import { network } from './in-process-relay.ts';
import { generousPeers } from './served-network.ts';
import { ServedRelay } from './served-relay.ts';

/**
 * @example
 * await using chain = await Chain.start();
 * const relay = await chain.relay();
 * chain.register(relay);
 */
export class Chain implements AsyncDisposable {
  /** Nodes that have the same contract, unless a test gives one of its own. */
  readonly nodes: readonly FakeNode[];
  readonly #parts: AsyncDisposableStack;
  readonly #folder: string;

  private constructor(nodes: readonly FakeNode[], folder: string, parts: AsyncDisposableStack) {
    this.nodes = nodes;
    this.#folder = folder;
    this.#parts = parts;
  }

  static async start(count = 1): Promise<Chain> {
    await using parts = new AsyncDisposableStack();
    const { path } = parts.use(temporaryFolder());
    const nodes = [parts.use(await FakeNode.start(network.context))];
    const [{ contract }] = nodes as [FakeNode];
    contract.fee = 0;
    while (nodes.length < count) {
      nodes.push(parts.use(await FakeNode.start(network.context, contract)));
    }
    return new Chain(nodes, path, parts.move());
  }

  get node(): FakeNode {
    return this.nodes[0] as FakeNode;
  }

  /** Starts a relay that reads the registry through the nodes; it is not registered. */
  async relay(config: PartialConfig = {}): Promise<ServedRelay> {
    const authority = join(this.#folder, 'tls');
    const ca = await devAuthority(authority, systemClock.now());
    const { limits, ...others } = config;
    return this.#parts.use(
      await ServedRelay.start({
        registry: { nodes: this.nodes.map(({ url }) => url) },
        tls: { authority },
        federation: { ca },
        limits: { ...generousPeers, ...limits },
        ...others,
      }),
    );
  }

  /** Registers a relay, with the witness of its account. */
  register(relay: ServedRelay, endpoint = relay.server.https[0] as string): void {
    this.change(relay, 'registerRelay', endpoint);
  }

  /** Executes a call of the relay's operator. */
  change({ relayId }: ServedRelay, method: string, value: string | boolean): void {
    const signers = [{ account: relayId, scopes: 'CalledByEntry' }];
    const isDone = this.node.contract.execute({ method, args: [relayId, value], signers });
    if (isDone !== true) throw new Error(`${method} was declined`);
  }

  /** Executes a call of the governance. */
  govern({ relayId }: ServedRelay, method: 'suspendRelay' | 'restoreRelay'): void {
    const { contract } = this.node;
    const signers = [{ account: contract.owner, scopes: 'CalledByEntry' }];
    if (contract.execute({ method, args: [relayId], signers }) !== true) throw new Error(method);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync();
  }
}
