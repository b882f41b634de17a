import {
  activeRelays,
  checkDescriptorStatus,
  checkRelayEntry,
  descriptorAddresses,
  type Network,
  type Registry,
  type RelayDescriptor,
  type RelayEntry,
  verifyDescriptor,
} from '@posthouse/protocol';
import type { JsonValue } from '@posthouse/protocol/json';
import { type Clock, unixSeconds } from '../environment.ts';
import {
  ClientError,
  checkRelayAnswer,
  isClientError,
  RelayMisbehaviour,
  RelayUnreachable,
} from '../errors.ts';
import { Collection } from '../store/collection.ts';
import type { Store } from '../store/index.ts';
import { httpResult } from './check-response.ts';
import { withDeadline } from './deadline.ts';
import type { Transport } from './transport.ts';

/** A relay whose registry record is active and whose current descriptor was verified. */
export interface VerifiedRelay {
  readonly relayId: string;
  readonly descriptor: RelayDescriptor;
  /** HTTPS base addresses and WebSocket addresses of the descriptor, unchanged. */
  readonly https: readonly string[];
  readonly wss: readonly string[];
}

/** Last verified descriptor of each relay. */
const descriptors = new Collection<RelayDescriptor>('descriptors');

/** A descriptor is a few hundred bytes; no rule bounds it. */
const maxDescriptorBytes = 262_144;

/** Milliseconds to wait for a descriptor. */
const timeout = 30_000;

export interface DiscoveryParts {
  readonly network: Network;
  readonly registry: Registry;
  readonly transport: Transport;
  readonly store: Store;
  readonly clock: Clock;
}

/**
 * Finds relays (01 §13.4, 02 §1.2): reads the registry record, fetches the descriptor from its
 * endpoint and makes every check of 01 §13.3. Addresses from other sources are not used.
 */
export class Discovery {
  readonly #parts: DiscoveryParts;

  constructor(parts: DiscoveryParts) {
    this.#parts = parts;
  }

  /**
   * Finds a relay by its ID and verifies its current descriptor. If the endpoint cannot be reached,
   * the last verified descriptor is used until it expires.
   *
   * @throws ClientError `no_relay` if the registry has no active record
   * @throws RelayUnreachable, RelayMisbehaviour
   */
  async find(relayId: string, signal: AbortSignal): Promise<VerifiedRelay> {
    const entry = await this.#parts.registry.getRelay(relayId, signal);
    signal.throwIfAborted();
    if (entry === undefined)
      throw new ClientError(
        'no_relay',
        `${relayId} is not registered: check the relay ID and the registry`,
      );
    checkCandidate(entry, relayId);
    try {
      const descriptor = await this.#fetch(entry, signal);
      const { store } = this.#parts;
      await store.write((tx) => descriptors.put(tx, relayId, descriptor));
      return verified(descriptor);
    } catch (error) {
      signal.throwIfAborted();
      const cached = await this.#cached(entry);
      if (cached !== undefined && error instanceof RelayUnreachable) return verified(cached);
      throw error;
    }
  }

  /**
   * Returns the first usable relay among the registry's active ones, in random order; if none is
   * wanted, the first other one.
   *
   * @throws ClientError `no_relay`, with the last failure as its cause
   */
  async choose(
    signal: AbortSignal,
    shuffle: <T>(items: T[]) => T[],
    isWanted: (relay: VerifiedRelay) => boolean = () => true,
  ): Promise<VerifiedRelay> {
    const entries = await activeRelays(this.#parts.registry, { signal });
    const candidates = entries.map((entry) => entry.relay_id);
    let cause: unknown;
    let other: VerifiedRelay | undefined;
    for (const relayId of shuffle(candidates)) {
      try {
        const relay = await this.find(relayId, signal);
        if (isWanted(relay)) return relay;
        other ??= relay;
      } catch (error) {
        if (!isClientError(error)) throw error;
        cause = error;
      }
    }
    if (other !== undefined) return other;
    throw new ClientError(
      'no_relay',
      'no relay of the registry can be used: check the registry and the connection',
      { cause },
    );
  }

  async #fetch(entry: RelayEntry, signal: AbortSignal): Promise<RelayDescriptor> {
    const { network, transport, clock } = this.#parts;
    const value = await requestDescriptor(transport, entry.endpoint, signal);
    const claimed = (value as { relay_id?: unknown } | null)?.relay_id;
    if (claimed !== undefined && claimed !== entry.relay_id) {
      throw new RelayMisbehaviour('wrong_relay_id', 'descriptor of another relay', {
        method: 'relay.descriptor',
      });
    }
    return checkRelayAnswer('invalid_descriptor', 'relay.descriptor', () => {
      verifyDescriptor(network, value, { entry, now: unixSeconds(clock) });
      return value;
    });
  }

  async #cached(entry: RelayEntry): Promise<RelayDescriptor | undefined> {
    const { store, clock } = this.#parts;
    const cached = await store.read((tx) => descriptors.get(tx, entry.relay_id));
    if (cached === undefined) return undefined;
    try {
      checkDescriptorStatus(cached, { entry, now: unixSeconds(clock) });
      return cached;
    } catch {
      return undefined;
    }
  }
}

/** Requests the descriptor at a registry record's endpoint; it is not verified yet. */
export async function requestDescriptor(
  transport: Transport,
  endpoint: string,
  signal: AbortSignal,
): Promise<JsonValue> {
  const response = await withDeadline(signal, timeout, (bounded) =>
    transport.request({
      verb: 'GET',
      url: `${endpoint.replace(/\/$/, '')}/relay/descriptor`,
      headers: { accept: 'application/json' },
      signal: bounded,
      maxBytes: maxDescriptorBytes,
    }),
  );
  return httpResult('relay.descriptor', response);
}

function checkCandidate(entry: RelayEntry, relayId: string): void {
  try {
    checkRelayEntry(entry);
  } catch (cause) {
    throw new ClientError('no_relay', `registry record of ${relayId} is malformed`, { cause });
  }
  if (entry.relay_id !== relayId || entry.status !== 'active') {
    throw new ClientError('no_relay', `${relayId} is not an active relay`);
  }
}

function verified(descriptor: RelayDescriptor): VerifiedRelay {
  const { https, wss } = descriptorAddresses(descriptor);
  return { relayId: descriptor.relay_id, descriptor, https, wss };
}
