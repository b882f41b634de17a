/** The registry as the client reads it: an object of the app, or the contract on the chain. */
import {
  ChainRegistry,
  isRegistryError,
  type Network,
  type NodePost,
  type Registry,
  type RegistryNodes,
  type RelayEntry,
} from '@posthouse/protocol';
import { type Clock, unixSeconds } from '../environment.ts';
import { ClientError, RelayUnreachable } from '../errors.ts';
import { Collection } from '../store/collection.ts';
import type { Store } from '../store/index.ts';
import { withDeadline } from './deadline.ts';
import type { Transport } from './transport.ts';

/** A registry, or the nodes of the chain through which the network's contract is read. */
export type RegistrySource = Registry | RegistryNodes;

/** Milliseconds to wait for a node. */
const timeout = 10_000;

/** Milliseconds to read the list, of all its parts and from all nodes that are asked. */
const listTimeout = 60_000;

/** Seconds that the last record of a relay serves while no node can be read. */
const grace = 21_600;

interface KnownRecord {
  readonly entry: RelayEntry;
  /** Unix seconds. */
  readonly readAt: number;
}

/** Last active record of each relay that was looked for, read from the chain. */
const records = new Collection<KnownRecord>('registry-records');

/**
 * Returns a function that sends requests to nodes of the chain over a transport.
 *
 * @example
 * import { nodePost, webTransport } from '@posthouse/client';
 * import { ChainRegistry } from '@posthouse/protocol';
 * const nodes = ['https://node.example:10331'];
 * const registry = new ChainRegistry({ network, nodes, post: nodePost(webTransport) });
 */
export function nodePost(transport: Transport): NodePost {
  return async ({ url, body, maxBytes, signal = new AbortController().signal }) => {
    try {
      return await withDeadline(signal, timeout, (bounded) =>
        transport.request({
          verb: 'POST',
          url,
          headers: { accept: 'application/json', 'content-type': 'application/json' },
          body,
          signal: bounded,
          maxBytes,
        }),
      );
    } catch (error) {
      throw withoutRelay(error);
    }
  };
}

/** Transports speak of relays, and a node is none: returns the platform's own error. */
function withoutRelay(error: unknown): unknown {
  let found = error;
  while (found instanceof ClientError) found = found.cause ?? new Error(found.message);
  return found;
}

/** Opens what an app gave as registry. @throws ProtocolError `bad_request` for unusable nodes */
export function openRegistry(
  source: RegistrySource,
  parts: {
    readonly network: Network;
    readonly transport: Transport;
    readonly store: Store;
    readonly clock: Clock;
  },
): Registry {
  const { network, transport } = parts;
  const registry =
    'nodes' in source
      ? new ChainRegistry({ ...source, network, post: nodePost(transport) })
      : source;
  return registry instanceof ChainRegistry ? new RememberingRegistry(registry, parts) : registry;
}

/**
 * A registry on the chain whose last records serve for six hours while no node can be read, as
 * between relays (07 §B5): only for relays that were looked for before, and not if nodes differ.
 */
class RememberingRegistry implements Registry {
  readonly #chain: ChainRegistry;
  readonly #parts: { readonly store: Store; readonly clock: Clock };

  constructor(chain: ChainRegistry, parts: { readonly store: Store; readonly clock: Clock }) {
    this.#chain = chain;
    this.#parts = parts;
  }

  async getRelay(relayId: string, signal?: AbortSignal): Promise<RelayEntry | undefined> {
    const { store, clock } = this.#parts;
    let entry: RelayEntry | undefined;
    try {
      entry = await this.#chain.getRelay(relayId, signal);
    } catch (error) {
      if (!isRegistryError(error)) throw error;
      // Nodes that differ, and a malformed record, are answers: an earlier one does not replace them.
      const isAnswer = error.code === 'nodes_differ' || error.code === 'invalid_record';
      const known = isAnswer ? undefined : await this.#remembered(relayId);
      if (known !== undefined) return known;
      throw asUnreachable(error);
    }
    const readAt = unixSeconds(clock);
    await store.write(async (tx) => {
      if (entry?.status === 'active') await records.put(tx, relayId, { entry, readAt });
      else await records.delete(tx, relayId);
    });
    return entry;
  }

  async *listRelays(signal?: AbortSignal): AsyncIterable<RelayEntry> {
    const caller = signal ?? new AbortController().signal;
    try {
      yield* await withDeadline(caller, listTimeout, async (bounded) => {
        const entries: RelayEntry[] = [];
        for await (const entry of this.#chain.listRelays(bounded)) entries.push(entry);
        return entries;
      });
    } catch (error) {
      throw isRegistryError(error) ? asUnreachable(error) : error;
    }
  }

  async #remembered(relayId: string): Promise<RelayEntry | undefined> {
    const { store, clock } = this.#parts;
    const known = await store.read((tx) => records.get(tx, relayId));
    if (known === undefined) return undefined;
    const age = unixSeconds(clock) - known.readAt;
    return age >= 0 && age < grace ? known.entry : undefined;
  }
}

/** A registry that cannot be read is as a relay that cannot be reached: tried again later. */
function asUnreachable(cause: Error): RelayUnreachable {
  return new RelayUnreachable(`the registry cannot be read: ${cause.message}`, {
    outcomeUnknown: false,
    cause,
  });
}
