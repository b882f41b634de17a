/** The routing table of the relay DHT: buckets of the relays that are eligible now (07 §B5). */
import { RoutingTable } from '@posthouse/protocol/federation';
import type { RelayContext } from '../../context.ts';
import type { Eligibility } from '../eligibility.ts';
import type { EligiblePeer } from '../verify-descriptor.ts';

/** A relay that gives no answer so many times in a row leaves the table until it answers. */
const failuresToLeave = 5;

export interface TableParts {
  readonly eligibility: Pick<Eligibility, 'all' | 'find' | 'onEnter' | 'onDrop'>;
  /** Own Peer ID, multihash bytes. */
  readonly self: Uint8Array;
  /** Asks a relay with `FIND_NODE`; returns whether it gave a valid answer. */
  readonly probe: (peer: EligiblePeer) => Promise<boolean>;
}

/**
 * The routing table. A relay enters it when it is admitted, and leaves it when it loses its
 * admission. If a bucket is full, the relay of it that was seen least recently is asked, and makes
 * room if it gives no answer.
 */
export class DhtTable implements Disposable {
  readonly #parts: TableParts;
  readonly #table: RoutingTable<EligiblePeer>;
  /** Failures in a row, by relay ID; only of admitted relays. */
  readonly #failures = new Map<string, number>();
  readonly #listeners: readonly Disposable[];
  #isProbing = false;

  constructor({ network, limits }: Pick<RelayContext, 'network' | 'limits'>, parts: TableParts) {
    const { eligibility, self } = parts;
    this.#parts = parts;
    const options = { self, bucketSize: limits.dhtBucket };
    this.#table = new RoutingTable(network.primitives, options);
    this.#listeners = [
      eligibility.onEnter((peer) => this.#entered(peer)),
      eligibility.onDrop(({ relayId }) => this.#dropped(relayId)),
    ];
    for (const peer of eligibility.all()) this.#entered(peer);
  }

  get size(): number {
    return this.#table.size;
  }

  /** Returns up to `count` relays that are eligible now, nearest to a raw lookup input first. */
  closest(raw: Uint8Array, count: number): EligiblePeer[] {
    const nearest = this.#table.closest(raw, this.#table.size);
    const eligible: EligiblePeer[] = [];
    for (const { relayId } of nearest) {
      if (eligible.length >= count) break;
      const peer = this.#parts.eligibility.find(relayId);
      if (peer !== undefined) eligible.push(peer);
    }
    return eligible;
  }

  /** Returns admitted relays that are not in the table: after failures, or for want of room. */
  outside(): EligiblePeer[] {
    const { eligibility } = this.#parts;
    return eligibility.all().filter(({ relayId }) => this.#table.ofRelay(relayId) === undefined);
  }

  /** Gives a relay that left after failures, and has connected again, one more attempt. */
  reconnected(relayId: string): void {
    const peer = this.#parts.eligibility.find(relayId);
    if (peer === undefined || this.#failuresOf(relayId) < failuresToLeave) return;
    this.#failures.set(relayId, failuresToLeave - 1);
    this.#entered(peer);
  }

  /** Returns inputs whose lookups refresh the buckets, one for each that is likely to have relays. */
  refreshInputs(random: RelayContext['random']): Uint8Array[] {
    const depth = Math.ceil(Math.log2(this.#table.size + 1));
    return [...this.#table.refreshInputs(random, depth).values()];
  }

  /** Records whether a relay answered a question. */
  noteOutcome(relayId: string, isAnswered: boolean): void {
    const peer = this.#parts.eligibility.find(relayId);
    if (peer === undefined) return;
    if (isAnswered) {
      this.#failures.delete(relayId);
      this.#table.insert(peer);
      return;
    }
    const failures = this.#failuresOf(relayId) + 1;
    this.#failures.set(relayId, failures);
    if (failures >= failuresToLeave) this.#table.remove(relayId);
  }

  #entered(peer: EligiblePeer): void {
    if (this.#failuresOf(peer.relayId) >= failuresToLeave) return;
    if (this.#table.insert(peer) === 'full') void this.#makeRoom(peer);
  }

  #failuresOf(relayId: string): number {
    return this.#failures.get(relayId) ?? 0;
  }

  /** One at a time: relays that connect again and again must not have others asked each time. */
  async #makeRoom(peer: EligiblePeer): Promise<void> {
    const oldest = this.#table.leastRecent(peer.peerId);
    if (oldest === undefined || this.#isProbing) return;
    this.#isProbing = true;
    try {
      // An answer counts as seen just now.
      if (await this.#parts.probe(oldest)) return;
      this.#table.remove(oldest.relayId);
      const current = this.#parts.eligibility.find(peer.relayId);
      if (current !== undefined) this.#table.insert(current);
    } finally {
      this.#isProbing = false;
    }
  }

  #dropped(relayId: string): void {
    this.#failures.delete(relayId);
    this.#table.remove(relayId);
  }

  [Symbol.dispose](): void {
    for (const listener of this.#listeners) listener[Symbol.dispose]();
  }
}
