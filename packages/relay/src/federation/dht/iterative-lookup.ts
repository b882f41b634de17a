/** The iterative lookup over the relay DHT (07 §B7), with the network as a parameter. */
import { rejectOnAbort } from '@posthouse/peer';
import { hex, type Network } from '@posthouse/protocol';
import {
  formatMultiaddr,
  type KadCandidate,
  type KadMessage,
  type KadRecord,
  type KadRequest,
  kadCandidates,
  Lookup,
} from '@posthouse/protocol/federation';
import type { Clock } from '../../context.ts';
import type { RelayLimits } from '../../limits.ts';
import { timeLimit } from '../time-limit.ts';

/** A peer that may be asked: it was authenticated. */
export interface DhtPeer {
  /** Multihash bytes. */
  readonly peerId: Uint8Array;
}

/** What a lookup needs of the network of relays. */
interface LookupNetwork<P extends DhtPeer> {
  /** Returns up to `count` peers of the routing table, nearest to a raw lookup input first. */
  closest(raw: Uint8Array, count: number): readonly P[];
  /**
   * Authenticates a peer that an answer names (07 §B4), or finds it among those that were.
   *
   * @returns `undefined` if it cannot be asked
   */
  candidate(candidate: KadCandidate, signal: AbortSignal): Promise<P | undefined>;
  /**
   * Sends one request.
   *
   * @returns an answer that `checkKadReply` accepts, or `undefined`: a temporary failure
   */
  ask(peer: P, request: KadRequest, signal: AbortSignal): Promise<KadMessage | undefined>;
}

/** The bounds of lookups. */
type LookupLimits = Pick<
  RelayLimits,
  | 'dhtBucket'
  | 'dhtConcurrency'
  | 'dhtLookupRequests'
  | 'dhtLookupTimeout'
  | 'dhtQuestionTimeout'
  | 'peerAddresses'
>;

export interface LookupParts<P extends DhtPeer> {
  readonly primitives: Network['primitives'];
  readonly clock: Pick<Clock, 'after'>;
  readonly limits: LookupLimits;
  /** Own Peer ID, multihash bytes: this relay does not ask itself. */
  readonly self: Uint8Array;
  readonly network: LookupNetwork<P>;
}

/** What to look up. */
export interface LookupTask<P> {
  /** `GET_VALUE` or `FIND_NODE`, sent to each peer; its key is the raw lookup input. */
  readonly request: KadRequest;
  /** Called for each answer with a record, which nothing has verified; the lookup waits for it. */
  readonly onRecord?: (peer: P, record: KadRecord) => Promise<void>;
  readonly signal: AbortSignal;
}

/**
 * How a lookup ended: `complete` if the nearest peers have all answered, `exhausted` if the requests
 * or the time did not suffice for that, or no peer answered.
 */
type LookupOutcome = 'complete' | 'exhausted';

export interface LookupResult<P> {
  readonly outcome: LookupOutcome;
  /** The peers that answered, nearest first, at most a bucket. */
  readonly nearest: readonly P[];
  /** The peers that were asked and gave no valid answer. */
  readonly failed: readonly P[];
  readonly requests: number;
}

/**
 * Makes one iterative lookup after another; any number may be under way. Everything outside comes in
 * through its parts: a simulation drives it with a `network` in memory and a clock of its own.
 *
 * @example
 * const lookups = new IterativeLookups({ primitives, clock, limits, self, network: { closest, candidate, ask } });
 * const request = { type: kadTypes.getValue, key: deriveRouteKey(network, account) };
 * const { nearest, outcome } = await lookups.run({ request, onRecord, signal });
 */
export class IterativeLookups<P extends DhtPeer> {
  readonly #parts: LookupParts<P>;

  constructor(parts: LookupParts<P>) {
    this.#parts = parts;
  }

  /**
   * Asks the nearest known peers, then the nearer ones that they name, until the nearest of all have
   * answered. Ends early, without an error, when its time is over.
   *
   * @throws what the network or `onRecord` throw; the signal's reason
   */
  async run(task: LookupTask<P>): Promise<LookupResult<P>> {
    const { clock, limits } = this.#parts;
    using limit = timeLimit(clock, limits.dhtLookupTimeout, task.signal);
    const run = new LookupRun(this.#parts, { ...task, signal: limit.signal });
    try {
      await rejectOnAbort(limit.signal, run.finished());
    } catch (error) {
      if (!limit.isOver || task.signal.aborted) throw error;
    }
    return run.result();
  }
}

class LookupRun<P extends DhtPeer> {
  readonly #parts: LookupParts<P>;
  readonly #task: LookupTask<P>;
  readonly #lookup: Lookup;
  /** By Peer ID in hex: those that are authenticated, and those that are not yet. */
  readonly #peers = new Map<string, P>();
  readonly #candidates = new Map<string, KadCandidate>();
  readonly #failed: P[] = [];

  constructor(parts: LookupParts<P>, task: LookupTask<P>) {
    const { primitives, limits, self, network } = parts;
    this.#parts = parts;
    this.#task = task;
    const { key } = task.request;
    // More than must answer: they replace those that are gone.
    const known = network.closest(key, limits.dhtLookupRequests);
    for (const peer of known) this.#peers.set(hex(peer.peerId), peer);
    const bounds = {
      concurrency: limits.dhtConcurrency,
      closest: limits.dhtBucket,
      requests: limits.dhtLookupRequests,
    };
    const peers = known.map(({ peerId }) => peerId);
    this.#lookup = new Lookup(primitives, { self, target: key, peers, bounds });
  }

  /** Waits until nothing is left to ask, and every record was taken. */
  async finished(): Promise<void> {
    const records: Promise<void>[] = [];
    const underWay = new Set<Promise<void>>();
    while (!this.#task.signal.aborted) {
      for (const peerId of this.#lookup.next()) {
        const visit = this.#visit(peerId, records).finally(() => underWay.delete(visit));
        underWay.add(visit);
      }
      if (underWay.size === 0) break;
      await Promise.race(underWay);
    }
    await Promise.all(records);
  }

  result(): LookupResult<P> {
    const nearest = this.#lookup.nearest().flatMap((peerId) => this.#peers.get(hex(peerId)) ?? []);
    const { complete, requests } = this.#lookup;
    const isAnswered = nearest.length > 0 || requests === 0;
    const outcome = complete && isAnswered ? 'complete' : 'exhausted';
    return { outcome, nearest, failed: this.#failed, requests };
  }

  async #visit(peerId: Uint8Array, records: Promise<void>[]): Promise<void> {
    const { clock, limits, network } = this.#parts;
    const { request, onRecord, signal } = this.#task;
    // One that hangs must not use up the time of the lookup.
    using limit = timeLimit(clock, limits.dhtQuestionTimeout, signal);
    const id = hex(peerId);
    const peer = this.#peers.get(id) ?? (await this.#authenticated(id, limit.signal));
    const reply = peer && (await network.ask(peer, request, limit.signal));
    if (peer === undefined || reply === undefined) {
      if (peer !== undefined) this.#failed.push(peer);
      this.#lookup.failed(peerId);
      return;
    }
    const named = kadCandidates(reply);
    for (const candidate of named) this.#offer(candidate);
    this.#lookup.answered(
      peerId,
      named.map((each) => each.peerId),
    );
    if (reply.record === undefined || onRecord === undefined) return;
    const recorded = onRecord(peer, reply.record);
    // A failure is thrown by the one that waits for all of them.
    recorded.catch(() => {});
    records.push(recorded);
  }

  /** Remembers a peer's addresses, in turn of each answer: one that lies must not hide the peer. */
  #offer({ peerId, addresses }: KadCandidate): void {
    const id = hex(peerId);
    if (this.#peers.has(id)) return;
    const known = this.#candidates.get(id)?.addresses ?? [];
    const rounds = Math.max(known.length, addresses.length);
    const merged = Array.from({ length: rounds }, (_, index) => [known[index], addresses[index]])
      .flat()
      .filter((address) => address !== undefined);
    const distinct = new Map(merged.map((address) => [formatMultiaddr(address), address]));
    const bounded = [...distinct.values()].slice(0, this.#parts.limits.peerAddresses);
    this.#candidates.set(id, { peerId, addresses: bounded });
  }

  async #authenticated(id: string, signal: AbortSignal): Promise<P | undefined> {
    const candidate = this.#candidates.get(id);
    if (candidate === undefined) return undefined;
    const peer = await this.#parts.network.candidate(candidate, signal);
    if (peer !== undefined) this.#peers.set(id, peer);
    return peer;
  }
}
