/** Sending a route to other relays and counting those that stored it (07 §B7, §B12). */
import {
  type CompleteKadRecord,
  type KadMessage,
  type KadRequest,
  kadTypes,
} from '@posthouse/protocol/federation';
import type { Clock } from '../../context.ts';
import type { RelayLimits } from '../../limits.ts';
import { timeLimit } from '../time-limit.ts';

type PutRequest = Extract<KadRequest, { type: 0 }>;

export interface PublicationParts<P> {
  readonly clock: Pick<Clock, 'after'>;
  readonly limits: Pick<RelayLimits, 'dhtQuestionTimeout'>;
  readonly network: {
    /** As of `LookupNetwork`; a relay may be named by its ID alone. */
    ask(peer: P, request: KadRequest, signal: AbortSignal): Promise<KadMessage | undefined>;
  };
}

export interface PublicationTask<P> {
  readonly record: CompleteKadRecord;
  /** The nearest that a lookup found, and those that must have the route in any case; each once. */
  readonly targets: readonly P[];
  /** How many echoes are enough. */
  readonly enough: number;
  /** Milliseconds in which they are, `dhtPublishTimeout` less what the lookup took. */
  readonly within: number;
  readonly signal: AbortSignal;
}

export interface Published<P> {
  /** Whether as many relays stored the record as are enough, in time. */
  readonly isEnough: boolean;
  /** Whether each target stored the record, when it has answered or had its time. */
  readonly echoes: ReadonlyMap<P, Promise<boolean>>;
  /** Resolves with those that stored the record when that is known of every target. */
  readonly stored: Promise<readonly P[]>;
}

/**
 * Returns how many relays must store a route before its publication is answered.
 *
 * @param others how many other relays the registry lists as active
 */
export function replicaPolicy(limits: Pick<RelayLimits, 'dhtReplicas'>, others: number): number {
  return Math.min(limits.dhtReplicas, others);
}

/**
 * Sends records with `PUT_VALUE`. The network is a parameter, as for `IterativeLookups`.
 *
 * A target counts if its reply has the exact original record. A relay that echoes without storing
 * cannot be told from one that stores: several replicas and republication are the answer to it.
 *
 * @example
 * const publications = new Publications({ clock, limits, network: { ask } });
 * const enough = replicaPolicy(limits, others);
 * const task = { record, targets: nearest, enough, within: limits.dhtPublishTimeout, signal };
 * const { isEnough, stored } = await publications.publish(task);
 */
export class Publications<P> {
  readonly #parts: PublicationParts<P>;

  constructor(parts: PublicationParts<P>) {
    this.#parts = parts;
  }

  /**
   * Resolves as soon as enough targets stored the record, when all have answered, or when the
   * time is over. The other requests go on, each for `dhtQuestionTimeout` at most, until
   * `signal` aborts.
   *
   * @throws what the network throws
   */
  async publish(task: PublicationTask<P>): Promise<Published<P>> {
    const { record, targets, enough, within, signal } = task;
    const request: PutRequest = { type: kadTypes.putValue, key: record.key, record };
    const stored: P[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    using _timer = this.#parts.clock.after(Math.max(0, within), resolve);
    if (enough === 0) resolve();
    const echo = async (peer: P) => {
      const isStored = await this.#isStored(peer, { request, signal });
      if (isStored) stored.push(peer);
      if (stored.length >= enough) resolve();
      return isStored;
    };
    const echoes = new Map(targets.map((peer) => [peer, echo(peer)]));
    const sent = Promise.all(echoes.values()).then(() => stored);
    await Promise.race([promise, sent]);
    return { isEnough: stored.length >= enough, echoes, stored: sent };
  }

  async #isStored(
    peer: P,
    { request, signal }: { readonly request: PutRequest; readonly signal: AbortSignal },
  ): Promise<boolean> {
    const { clock, limits, network } = this.#parts;
    using limit = timeLimit(clock, limits.dhtQuestionTimeout, signal);
    const value = (await network.ask(peer, request, limit.signal))?.record?.value;
    return value !== undefined && Buffer.compare(value, request.record.value) === 0;
  }
}
