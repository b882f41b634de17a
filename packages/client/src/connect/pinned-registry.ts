/** The registry of an app that knows one relay, by its address alone. */
import {
  checkHttpsEndpoint,
  checkRelayEntry,
  type Network,
  type Registry,
  type RelayEntry,
  verifyDescriptor,
} from '@posthouse/protocol';
import { type Clock, systemClock, unixSeconds } from '../environment.ts';
import { checkInput, checkRelayAnswer } from '../errors.ts';
import { Collection } from '../store/collection.ts';
import type { Store } from '../store/index.ts';
import { requestDescriptor } from './discovery.ts';
import type { Transport } from './transport.ts';

/** The relay that was found at an address at the first contact: key is the address. */
const pins = new Collection<RelayEntry>('pinned-relays');

/** Where a relay is, and how it is asked. */
export interface RelayAddress {
  /** HTTPS base address of the relay's client API (01 §12). */
  readonly endpoint: string;
  readonly transport: Transport;
  readonly clock?: Clock;
}

/**
 * Makes the registry of an app that knows one relay by its address. The relay's own claim of its ID
 * is trusted once, as far as HTTPS proves whose address it is; the store remembers the ID, and from
 * then on another relay at this address is refused. Accounts at other relays are not found.
 *
 * @param options.store the client's
 * @throws ClientError `invalid_input` for an address that is not the base address of an API
 * @example
 * import { Client, pinnedRegistry, webTransport } from '@posthouse/client';
 * import { IndexedDbStore } from '@posthouse/client/web';
 * const [transport, store] = [webTransport, await IndexedDbStore.open()];
 * const endpoint = 'https://relay.example.org/svc/v1';
 * const registry = pinnedRegistry(network, { endpoint, transport, store });
 * await using opened = await Client.open({ network, registry, transport, store });
 */
export function pinnedRegistry(
  network: Network,
  options: RelayAddress & { readonly store: Store },
): Registry {
  const { store, ...given } = options;
  const address = { ...given, endpoint: baseAddress(given.endpoint) };
  const { endpoint } = address;
  const pinned = async (signal = new AbortController().signal): Promise<RelayEntry> => {
    const known = await store.read((tx) => pins.get(tx, endpoint));
    if (known !== undefined) return known;
    const found = await askRelayEntry(network, address, signal);
    return await store.write(async (tx) => {
      // Another page or process may have been first.
      const other = await pins.get(tx, endpoint);
      if (other === undefined) await pins.put(tx, endpoint, found);
      return other ?? found;
    });
  };
  return {
    async getRelay(relayId, signal) {
      const entry = await pinned(signal);
      return entry.relay_id === relayId ? entry : undefined;
    },
    async *listRelays(signal) {
      yield await pinned(signal);
    },
  };
}

/**
 * Asks the relay at an address for its descriptor and verifies it, all but what a registry would
 * say (01 §13.3): the relay's claim of its ID is believed.
 *
 * @returns the record that a registry would have of the relay
 * @throws ClientError `invalid_input`; RelayUnreachable, RelayMisbehaviour
 */
export async function askRelayEntry(
  network: Network,
  { endpoint, transport, clock = systemClock }: RelayAddress,
  signal: AbortSignal,
): Promise<RelayEntry> {
  const value = await requestDescriptor(transport, baseAddress(endpoint), signal);
  return checkRelayAnswer('invalid_descriptor', 'relay.descriptor', () => {
    const entry: unknown = {
      relay_id: (value as { relay_id?: unknown } | null)?.relay_id,
      endpoint: baseAddress(endpoint),
      status: 'active',
      updated_at: clock.milliseconds(),
    };
    checkRelayEntry(entry);
    verifyDescriptor(network, value, { entry, now: unixSeconds(clock) });
    return entry;
  });
}

function baseAddress(endpoint: string): string {
  const address = endpoint.replace(/\/$/, '');
  checkInput('endpoint', () => checkHttpsEndpoint(address, 'endpoint'));
  return address;
}
