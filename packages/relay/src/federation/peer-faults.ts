import { BoundedMap } from '../bounded-map.ts';
import type { RelayContext } from '../context.ts';
import { peerMisbehaved } from '../observability/peer-events.ts';

/** What another relay did against the protocol. A label of metrics: a closed set. */
export type PeerFault =
  /** A frame that cannot be read, a second request or response, or no UTF-8 or JSON. */
  | 'frame'
  /** A DHT message or record that fails a check (07 §B6, §B10). */
  | 'dht_message'
  /** A response that is none, or of another request (07 §C3). */
  | 'response';

/** Faults of a relay: they weigh less as time passes. */
interface Count {
  faults: number;
  /** When `faults` was computed, monotonic milliseconds. */
  at: number;
}

/** Milliseconds in which one fault is forgotten. */
const decay = 60_000;

/**
 * Counts invalid messages of other relays; each minute takes one fault off. A relay that reaches the
 * limit is refused for a while (07 §B5, §C9).
 */
export class PeerFaults {
  readonly #context: Pick<RelayContext, 'clock' | 'limits' | 'log' | 'metrics'>;
  readonly #onRefused: (relayId: string) => void;
  readonly #counts: BoundedMap<string, Count>;
  /** Monotonic milliseconds until which a relay is refused. */
  readonly #refused: BoundedMap<string, number>;

  /** @param onRefused closes the relay's connections */
  constructor(
    context: Pick<RelayContext, 'clock' | 'limits' | 'log' | 'metrics'>,
    onRefused: (relayId: string) => void,
  ) {
    this.#context = context;
    this.#onRefused = onRefused;
    this.#counts = new BoundedMap(context.limits.federationRegistryRelays);
    this.#refused = new BoundedMap(context.limits.federationRegistryRelays);
  }

  /** Counts a fault. */
  add(relayId: string, fault: PeerFault): void {
    const { clock, limits } = this.#context;
    const now = clock.monotonic();
    const { faults, at } = this.#counts.get(relayId) ?? { faults: 0, at: now };
    const count = { faults: Math.max(0, faults - (now - at) / decay) + 1, at: now };
    this.#counts.set(relayId, count);
    const isRefused = count.faults >= limits.peerFaults;
    peerMisbehaved(this.#context, { relay: relayId, fault, isRefused });
    if (!isRefused) return;
    this.#counts.delete(relayId);
    this.#refused.set(relayId, now + limits.peerFaultPause * 1_000);
    this.#onRefused(relayId);
  }

  /** Tells whether the relay is refused now. */
  isRefused(relayId: string): boolean {
    const until = this.#refused.get(relayId);
    return until !== undefined && this.#context.clock.monotonic() < until;
  }
}
