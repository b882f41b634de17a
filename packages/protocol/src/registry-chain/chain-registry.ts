import type { Network } from '../identity/network.ts';
import type { Registry, RelayEntry } from '../identity/registry.ts';
import { checkSchema, RelayId } from '../schema.ts';
import { isRegistryError, RegistryError, type RegistryErrorCode } from './errors.ts';
import {
  defaultReaderLimits,
  type NodePost,
  NodeReader,
  type ReaderLimits,
  type ReadingSteps,
} from './node-reader.ts';
import { checkRegistryNodes, type RegistryNodes } from './nodes.ts';

/** Is called for what the caller of a read does not see. Nodes are named by their origin. */
export interface ChainObserver {
  /** A node failed; the next one is asked. */
  failed?(node: string, error: RegistryError): void;
  /** A list had malformed records, which were skipped. */
  malformed?(node: string, count: number): void;
  /** Two nodes have different records of a relay that one of them lists as active. */
  differed?(relayId: string, nodes: readonly [string, string]): void;
}

export interface ChainRegistryOptions extends RegistryNodes {
  readonly network: Network;
  /** How requests are sent. */
  readonly post: NodePost;
  readonly limits?: Partial<ReaderLimits>;
  /** Runs the reading of an answer in pieces; at once by default. */
  readonly run?: <T>(steps: ReadingSteps<T>) => Promise<T>;
  readonly observer?: ChainObserver;
}

/**
 * Reads the registry contract of a network through Neo N3 nodes (07 §A6). The node that answered last
 * is asked first; when it fails, the others are asked in their order.
 *
 * @example
 * const nodes = ['https://node.example:10331'];
 * const registry = new ChainRegistry({ network, nodes, post: nodePost });
 * const entry = await registry.getRelay(relayId);
 * console.log(entry?.status);
 */
export class ChainRegistry implements Registry {
  readonly #nodes: readonly NodeReader[];
  readonly #agree: 1 | 2;
  readonly #observer: ChainObserver;
  /** Positions of the nodes that answered last, as the first and as the second one. */
  #preferred = 0;
  #confirming: number | undefined;

  /** @throws ProtocolError `bad_request` for nodes that cannot be used: see `checkRegistryNodes` */
  constructor(options: ChainRegistryOptions) {
    const { network, nodes, agree = 1, post, limits, run = runAtOnce, observer = {} } = options;
    checkRegistryNodes({ nodes, agree });
    const reader = { network, post, run, limits: { ...defaultReaderLimits, ...limits } };
    this.#nodes = nodes.map((url) => new NodeReader(url, reader));
    this.#agree = agree;
    this.#observer = observer;
  }

  /**
   * Reads the current record of a relay; `undefined` if it was never registered. If two nodes must
   * agree, an active record is returned only if a second node has the same one.
   *
   * @throws RegistryError; the signal's reason
   * @example
   * const entry = await registry.getRelay(relayId);
   */
  async getRelay(relayId: string, signal?: AbortSignal): Promise<RelayEntry | undefined> {
    checkSchema(RelayId, relayId);
    const [first, second] = await this.#answers((node) => node.getRelay(relayId, signal), {
      count: (entry) => (entry?.status === 'active' ? this.#agree : 1),
      signal,
    });
    if (second === undefined || isSameRecord(first.value, second.value)) return first.value;
    const origins = [first.node.origin, second.node.origin] as const;
    this.#observer.differed?.(relayId, origins);
    const both = origins.join(' and ');
    throw new RegistryError('nodes_differ', `${both} have different records of ${relayId}`);
  }

  /**
   * Reads all records of one node, of every status, in no particular order. Malformed ones are
   * skipped; repeated ones are not. Nothing is yielded unless the whole list could be read.
   *
   * @throws RegistryError; the signal's reason
   * @example
   * for await (const { relay_id, status } of registry.listRelays()) console.log(relay_id, status);
   */
  async *listRelays(signal?: AbortSignal): AsyncIterable<RelayEntry> {
    const [{ node, value }] = await this.#answers((one) => one.listRelays(signal), { signal });
    if (value.malformed > 0) this.#observer.malformed?.(node.origin, value.malformed);
    yield* value.entries;
  }

  /**
   * Reads what a registration costs now, in 10^-8 GAS; what counts is the fee at its execution
   * (07 §A4).
   *
   * @throws RegistryError; the signal's reason
   * @example
   * const fee = await chainRegistry.registrationFee(); // 10000000000 are 100 GAS
   */
  async registrationFee(signal?: AbortSignal): Promise<number> {
    const [{ value }] = await this.#answers((node) => node.registrationFee(signal), { signal });
    return value;
  }

  /** Asks nodes, the preferred one first, until so many have answered. */
  async #answers<T>(
    ask: (node: NodeReader) => Promise<T>,
    options: {
      /** How many answers are needed, by the first one. */
      readonly count?: (value: T) => number;
      readonly signal: AbortSignal | undefined;
    },
  ): Promise<readonly [Answer<T>, Answer<T> | undefined]> {
    const { count = () => 1, signal } = options;
    const reasons: string[] = [];
    const codes = new Set<RegistryErrorCode>();
    let first: Answer<T> | undefined;
    for (const index of this.#order()) {
      const node = this.#nodes[index] as NodeReader;
      // A second opinion of the same host is none.
      if (first?.node.host === node.host) continue;
      try {
        const value = await ask(node);
        if (first !== undefined) {
          this.#confirming = index;
          return [first, { node, value }];
        }
        first = { node, value };
        this.#preferred = index;
        if (count(value) === 1) return [first, undefined];
      } catch (error) {
        // The caller has no more time: the next read begins at another node.
        if (signal?.aborted === true) this.#leave(index, first === undefined);
        if (!isRegistryError(error) || error.code === 'invalid_record') throw error;
        this.#observer.failed?.(node.origin, error);
        reasons.push(`${node.origin}: ${error.message}`);
        codes.add(error.code);
      }
    }
    const [code = 'unreachable', ...others] = codes;
    const who = first === undefined ? 'no node' : 'no second node';
    throw new RegistryError(
      others.length === 0 ? code : 'unreachable',
      `${who} of the registry can be used: ${reasons.join('; ')}`,
    );
  }

  /** The nodes' positions in the order in which they are asked. */
  #order(): readonly number[] {
    const { length } = this.#nodes;
    const positions = Array.from({ length }, (_, offset) => (this.#preferred + offset) % length);
    const [first, ...others] = positions as [number, ...number[]];
    if (this.#confirming === undefined) return positions;
    return [...new Set([first, this.#confirming, ...others])];
  }

  #leave(index: number, isFirst: boolean): void {
    const next = (index + 1) % this.#nodes.length;
    if (!isFirst) this.#confirming = next;
    else if (this.#preferred === index) this.#preferred = next;
  }
}

interface Answer<T> {
  readonly node: NodeReader;
  readonly value: T;
}

function isSameRecord(one: RelayEntry | undefined, other: RelayEntry | undefined): boolean {
  return (
    one?.endpoint === other?.endpoint &&
    one?.status === other?.status &&
    one?.updated_at === other?.updated_at
  );
}

async function runAtOnce<T>(steps: ReadingSteps<T>): Promise<T> {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}
