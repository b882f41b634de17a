import type { EligiblePeer } from '../../../src/federation/verify-descriptor.ts';

/** The relays that a simulated relay admitted: what the eligible set is to the routing table. */
export class AdmittedPeers {
  readonly #peers = new Map<string, EligiblePeer>();
  readonly #onEnter = new Set<(peer: EligiblePeer) => void>();

  all(): readonly EligiblePeer[] {
    return [...this.#peers.values()];
  }

  find(relayId: string): EligiblePeer | undefined {
    return this.#peers.get(relayId);
  }

  /** Enters a relay that was authenticated just now. */
  enter(peer: EligiblePeer): void {
    this.#peers.set(peer.relayId, peer);
    for (const listener of this.#onEnter) listener(peer);
  }

  onEnter(listener: (peer: EligiblePeer) => void): Disposable {
    this.#onEnter.add(listener);
    return { [Symbol.dispose]: () => void this.#onEnter.delete(listener) };
  }

  /** The registry of a simulation takes no relay off its list. */
  onDrop(): Disposable {
    return { [Symbol.dispose]: () => {} };
  }
}
