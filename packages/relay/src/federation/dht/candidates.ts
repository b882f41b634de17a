import { rejectOnAbort } from '@posthouse/peer';
import { hex } from '@posthouse/protocol';
import type { KadCandidate } from '@posthouse/protocol/federation';
import { BoundedMap } from '../../bounded-map.ts';
import type { RelayContext } from '../../context.ts';
import { RateLimiter } from '../../dispatch/rate-limiter.ts';
import { candidateTried } from '../../observability/peer-events.ts';
import type { Eligibility } from '../eligibility.ts';
import type { PeerDials } from '../peer-dials.ts';
import { timeLimit } from '../time-limit.ts';
import type { EligiblePeer } from '../verify-descriptor.ts';

export interface CandidateParts {
  readonly eligibility: Pick<Eligibility, 'findPeer'>;
  readonly dials: Pick<PeerDials, 'dialUnknown'>;
  readonly stopping: AbortSignal;
}

/**
 * Authenticates peers that answers of the DHT name: by Peer ID and address alone, with the handshake
 * (07 §B4). Answers are written by other relays, so the dials are limited in all: one that lies must
 * not make this relay dial the world.
 */
export class DhtCandidates {
  readonly #context: RelayContext;
  readonly #parts: CandidateParts;
  readonly #dials = new Map<string, Promise<EligiblePeer | undefined>>();
  /** Monotonic milliseconds until which a peer that was not reached is not dialled, by Peer ID. */
  readonly #failed: BoundedMap<string, number>;
  readonly #rate: RateLimiter;

  constructor(context: RelayContext, parts: CandidateParts) {
    const { clock, limits } = context;
    this.#context = context;
    this.#parts = parts;
    this.#failed = new BoundedMap(limits.federationRegistryRelays);
    const { dhtCandidateRate: rate, dhtCandidateBurst: burst } = limits;
    this.#rate = new RateLimiter({ rate, burst, clock, keys: 1 });
  }

  /**
   * Finds a candidate among the eligible relays, or dials it.
   *
   * @returns `undefined` if it cannot be asked; the signal's end is no failure of the candidate
   */
  async find(candidate: KadCandidate, signal: AbortSignal): Promise<EligiblePeer | undefined> {
    const known = this.#parts.eligibility.findPeer(candidate.peerId);
    if (known !== undefined || candidate.addresses.length === 0) return known;
    const id = hex(candidate.peerId);
    let dial = this.#dials.get(id);
    if (dial === undefined) {
      if (!this.#mayDial(id)) return undefined;
      dial = this.#dial(id, candidate).finally(() => this.#dials.delete(id));
      this.#dials.set(id, dial);
    }
    return await rejectOnAbort(signal, dial).catch(() => undefined);
  }

  #mayDial(id: string): boolean {
    const { clock, limits } = this.#context;
    if (clock.monotonic() < (this.#failed.get(id) ?? 0)) return false;
    const isRoom = this.#dials.size < limits.dhtCandidateDials && this.#rate.take('') === 0;
    if (!isRoom) candidateTried(this.#context, 'limited');
    return isRoom;
  }

  async #dial(id: string, candidate: KadCandidate): Promise<EligiblePeer | undefined> {
    const { clock, limits } = this.#context;
    const { dials, stopping } = this.#parts;
    using limit = timeLimit(clock, limits.dhtQuestionTimeout, stopping);
    try {
      const { peer } = await dials.dialUnknown(candidate, limit.signal);
      candidateTried(this.#context, 'admitted');
      return peer;
    } catch (error) {
      if (stopping.aborted) return undefined;
      candidateTried(this.#context, 'refused', error);
      this.#failed.set(id, clock.monotonic() + limits.dhtPause * 1_000);
      return undefined;
    }
  }
}
