import { badRequest } from '../errors.ts';
import { Counter, checkSchema, memberPath, RelayId, type Static, Type } from '../schema.ts';
import { checkHttpsEndpoint } from './endpoint.ts';
import type { Network } from './network.ts';

/** A record of the registry contract (chapter 01, section 12). */
export const RelayEntry = Type.Object({
  relay_id: RelayId,
  /** HTTPS base address under which the descriptor is found. */
  endpoint: Type.String(),
  /** Only `active` relays are candidates. */
  status: Type.Union([Type.Literal('active'), Type.Literal('disabled'), Type.Literal('suspended')]),
  /** Unix milliseconds. */
  updated_at: Counter,
});
export type RelayEntry = Static<typeof RelayEntry>;

/** Looks up relays. A record proves neither that a relay answers nor its capabilities. */
export interface Registry {
  getRelay(relayId: string, signal?: AbortSignal): Promise<RelayEntry | undefined>;
  /** Entries of every status, in no particular order. */
  listRelays(signal?: AbortSignal): AsyncIterable<RelayEntry>;
}

/**
 * Lists the relays of a registry that are active, each once. A relay that the list has twice is left
 * out: nothing says which of its records is right (07 §B5).
 *
 * @param read stops after so many entries
 * @example
 * for (const { relay_id, endpoint } of await activeRelays(registry)) console.log(relay_id, endpoint);
 */
export async function activeRelays(
  registry: Registry,
  { signal, read = 10_000 }: { readonly signal?: AbortSignal; readonly read?: number } = {},
): Promise<RelayEntry[]> {
  const entries = new Map<string, RelayEntry | undefined>();
  let count = 0;
  for await (const entry of registry.listRelays(signal)) {
    const { relay_id: relayId } = entry;
    entries.set(relayId, entries.has(relayId) ? undefined : entry);
    count += 1;
    if (count >= read) break;
  }
  return [...entries.values()].filter((entry) => entry?.status === 'active') as RelayEntry[];
}

/**
 * Checks a registry record.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkRelayEntry(value);
 * console.log(value.endpoint);
 */
export function checkRelayEntry(value: unknown, path = ''): asserts value is RelayEntry {
  checkSchema(RelayEntry, value, path);
  checkHttpsEndpoint(value.endpoint, memberPath(path, 'endpoint'));
}

/** The registry as a file, for networks that are not on a chain and for tests. */
export const StaticRegistryFile = Type.Object({
  /** The context of the network the records belong to. */
  context: Type.String(),
  relays: Type.Array(RelayEntry),
});
export type StaticRegistryFile = Static<typeof StaticRegistryFile>;

/**
 * Makes a registry from the parsed content of a file.
 *
 * @throws ProtocolError `bad_request` for a malformed file, a repeated relay, or a file of another
 *   network
 * @example
 * const registry = staticRegistry(network, parseJson(text));
 * const entry = await registry.getRelay(relayId);
 */
export function staticRegistry(network: Network, parsedJson: unknown): Registry {
  checkSchema(StaticRegistryFile, parsedJson);
  const { context, relays } = parsedJson;
  if (context !== network.context) throw badRequest('context', 'is of another network');
  const entries = new Map<string, RelayEntry>();
  for (const [index, entry] of relays.entries()) addRecord(entries, entry, index);
  return registryOf(entries);
}

/** Checks a record of a file and adds it to those before it. @throws ProtocolError `bad_request` */
export function addRecord(entries: Map<string, RelayEntry>, entry: unknown, index: number): void {
  const path = memberPath('relays', index);
  checkRelayEntry(entry, path);
  if (entries.has(entry.relay_id)) throw badRequest(path, 'repeats a relay');
  entries.set(entry.relay_id, entry);
}

/** Makes a registry of the records of a file. */
export function registryOf(entries: ReadonlyMap<string, RelayEntry>): Registry {
  return {
    getRelay: async (relayId) => entries.get(relayId),
    async *listRelays() {
      yield* entries.values();
    },
  };
}
