/**
 * The iterative Kademlia lookup (chapter 07, section B7) as a state machine: it names the peers to
 * ask, the caller asks them and reports. It neither verifies peers nor reads records.
 */
import type { Primitives } from '../crypto/primitives.ts';
import { hex } from '../encoding/bytes.ts';
import { compareDistance, dhtPosition, positionDistance } from './keyspace.ts';

/** The bounds of one lookup. */
export interface LookupBounds {
  /** Peers asked at the same time. */
  readonly concurrency: number;
  /** How many of the nearest peers must have answered; also the most that one answer adds. */
  readonly closest: number;
  /** Requests in all. */
  readonly requests: number;
}

interface Candidate {
  readonly id: string;
  readonly peer: Uint8Array;
  readonly distance: Uint8Array;
  /** The peers whose answers named this one, in hex; empty for a peer that the lookup began with. */
  readonly sources: Set<string>;
  state: 'new' | 'asked' | 'answered' | 'failed';
}

/**
 * So many failures more than answers of the peers that it named make a source doubtful. Peers that
 * only doubtful sources name are asked last: otherwise one lying relay could use up the requests
 * with invented peers near the target.
 */
const doubtfulFailures = 3;

/**
 * While peers that answers named are asked, each request of this number goes to one that the lookup
 * began with, so many times at the most: peers near the target that name each other only would use
 * up the requests otherwise (07 §B5, independent paths).
 */
const independent = { every: 4, most: 4 } as const;

/**
 * One lookup. It is done when the nearest candidates have all answered, when no candidate is left,
 * or when the requests are used up.
 *
 * @example
 * const [self] = peers as [Uint8Array];
 * const lookup = new Lookup(primitives, { self, target: key, peers, bounds: lookupBounds });
 * for (const peer of lookup.next()) lookup.failed(peer);
 * const found = lookup.nearest();
 */
export class Lookup {
  readonly #primitives: Primitives;
  readonly #self: string;
  /** Position of the lookup input. */
  readonly #target: Uint8Array;
  readonly #bounds: LookupBounds;
  /** By Peer ID in hex. */
  readonly #candidates = new Map<string, Candidate>();
  /** The same, nearest first. */
  readonly #order: Candidate[] = [];
  /** Answers minus failures of the peers that a source named, by its Peer ID in hex. */
  readonly #scores = new Map<string, number>();
  #requests = 0;
  #underWay = 0;
  /** Requests to peers that the lookup began with, although nearer ones were left to ask. */
  #independent = 0;

  /** @param start own Peer ID, lookup input, and the peers to begin with; multihash bytes */
  constructor(
    primitives: Primitives,
    start: {
      readonly self: Uint8Array;
      readonly target: Uint8Array;
      readonly peers: readonly Uint8Array[];
      readonly bounds: LookupBounds;
    },
  ) {
    this.#primitives = primitives;
    this.#self = hex(start.self);
    this.#target = dhtPosition(primitives, start.target);
    this.#bounds = start.bounds;
    for (const peer of start.peers) this.#add(peer, undefined);
  }

  /** Number of requests so far. */
  get requests(): number {
    return this.#requests;
  }

  /** Whether no peer is being asked and none is left to ask. */
  get done(): boolean {
    return this.#underWay === 0 && this.#toAsk() === undefined;
  }

  /** Whether the nearest candidates have all answered, or none is left: requests were enough. */
  get complete(): boolean {
    return this.#underWay === 0 && this.#nextCandidate() === undefined;
  }

  /**
   * Returns the peers to ask now; they count as being asked until `answered` or `failed` is called
   * for each. Empty while enough are being asked, and when the lookup is done.
   */
  next(): Uint8Array[] {
    const peers: Uint8Array[] = [];
    while (this.#underWay < this.#bounds.concurrency) {
      const candidate = this.#toAsk();
      if (candidate === undefined) break;
      if (candidate !== this.#nextCandidate()) this.#independent += 1;
      candidate.state = 'asked';
      this.#underWay += 1;
      this.#requests += 1;
      peers.push(candidate.peer);
    }
    return peers;
  }

  /** Reports a peer's answer with the peers that it named, of which the nearest are added. */
  answered(peer: Uint8Array, closer: readonly Uint8Array[]): void {
    const candidate = this.#end(peer, 'answered');
    if (candidate === undefined) return;
    const named = closer.map((each) => {
      // Answers name the same peers again and again.
      const known = this.#candidates.get(hex(each));
      return { each, distance: known?.distance ?? this.#distance(each) };
    });
    named.sort((a, b) => compareDistance(a.distance, b.distance));
    for (const { each } of named.slice(0, this.#bounds.closest)) this.#add(each, candidate.id);
  }

  /** Reports that a peer did not answer, or that its answer was invalid. */
  failed(peer: Uint8Array): void {
    this.#end(peer, 'failed');
  }

  /** Returns the nearest peers that have answered, nearest first. */
  nearest(): Uint8Array[] {
    return this.#order
      .filter(({ state }) => state === 'answered')
      .slice(0, this.#bounds.closest)
      .map(({ peer }) => peer);
  }

  /** The next candidate: one of the nearest that have not failed, or none if those have answered. */
  #toAsk(): Candidate | undefined {
    if (this.#requests >= this.#bounds.requests) return undefined;
    const next = this.#nextCandidate();
    if (next === undefined || !this.#isIndependentTurn(next)) return next;
    return this.#order.find(({ state, sources }) => state === 'new' && sources.size === 0) ?? next;
  }

  #isIndependentTurn({ sources }: Candidate): boolean {
    const isTurn = (this.#requests + 1) % independent.every === 0;
    return isTurn && sources.size > 0 && this.#independent < independent.most;
  }

  #nextCandidate(): Candidate | undefined {
    const open = this.#order.filter(({ state }) => state !== 'failed');
    const reliable = open.filter((candidate) => !this.#isDoubtful(candidate));
    const first = reliable.slice(0, this.#bounds.closest).find(({ state }) => state === 'new');
    if (first !== undefined || reliable.length >= this.#bounds.closest) return first;
    return open.find(({ state }) => state === 'new');
  }

  #isDoubtful({ sources, state }: Candidate): boolean {
    if (state === 'answered' || sources.size === 0) return false;
    return [...sources].every((source) => (this.#scores.get(source) ?? 0) <= -doubtfulFailures);
  }

  #add(peer: Uint8Array, source: string | undefined): void {
    const id = hex(peer);
    if (id === this.#self) return;
    const known = this.#candidates.get(id);
    // A peer that the lookup began with stays without sources.
    if (known !== undefined) {
      if (source !== undefined && known.sources.size > 0) known.sources.add(source);
      return;
    }
    const sources = new Set(source === undefined ? [] : [source]);
    const distance = this.#distance(peer);
    const candidate: Candidate = { id, peer, distance, sources, state: 'new' };
    this.#candidates.set(id, candidate);
    this.#order.splice(this.#indexOf(distance), 0, candidate);
  }

  /** Returns how many candidates are nearer than a distance. */
  #indexOf(distance: Uint8Array): number {
    let low = 0;
    for (let high = this.#order.length; low < high; ) {
      const middle = (low + high) >> 1;
      const { distance: other } = this.#order[middle] as Candidate;
      if (compareDistance(other, distance) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #end(peer: Uint8Array, state: 'answered' | 'failed'): Candidate | undefined {
    const candidate = this.#candidates.get(hex(peer));
    if (candidate?.state !== 'asked') return undefined;
    candidate.state = state;
    this.#underWay -= 1;
    for (const source of candidate.sources) {
      const score = this.#scores.get(source) ?? 0;
      this.#scores.set(source, score + (state === 'answered' ? 1 : -1));
    }
    return candidate;
  }

  #distance(peer: Uint8Array): Uint8Array {
    return positionDistance(this.#target, dhtPosition(this.#primitives, peer));
  }
}
