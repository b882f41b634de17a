/** Sending a route to other relays and counting those that stored it (07 §B7, §B12). */
import { hex } from '@posthouse/protocol';
import { type CompleteKadRecord, type KadRequest, kadTypes } from '@posthouse/protocol/federation';
import type { Clock } from '../../context.ts';
import type { RelayLimits } from '../../limits.ts';
import { timeLimit } from '../time-limit.ts';
import type { DhtPeer, LookupNetwork } from './iterative-lookup.ts';

type PutRequest = Extract<KadRequest, { type: 0 }>;

export interface PublicationParts<P extends DhtPeer> {
  readonly clock: Pick<Clock, 'after'>;
  readonly limits: Pick<RelayLimits, 'dhtReplicas' | 'dhtPublishTimeout' | 'dhtQuestionTimeout'>;
  readonly network: Pick<LookupNetwork<P>, 'ask'>;
}

export interface PublicationTask<P> {
  readonly record: CompleteKadRecord;
  /** The nearest peers that a lookup found, and those that must have the route in any case. */
  readonly targets: readonly P[];
  /** How many echoes are enough. */
  readonly enough: number;
  readonly signal: AbortSignal;
}

export interface Published<P> {
  /** Whether as many relays stored the record as are enough, in time. */
  readonly isEnough: boolean;
  /** Resolves when every target has answered or had its time, with those that stored the record. */
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
 * const task = { record, targets: nearest, enough: replicaPolicy(limits, others), signal };
 * const { isEnough, stored } = await publications.publish(task);
 */
export class Publications<P extends DhtPeer> {
  readonly #parts: PublicationParts<P>;

  constructor(parts: PublicationParts<P>) {
    this.#parts = parts;
  }

  /**
   * Resolves as soon as enough targets stored the record, when all have answered, or after
   * `dhtPublishTimeout`. The other requests go on, each for `dhtQuestionTimeout` at most, until
   * `signal` aborts.
   *
   * @throws what the network throws
   */
  async publish({ record, targets, enough, signal }: PublicationTask<P>): Promise<Published<P>> {
    const { clock, limits } = this.#parts;
    const request: PutRequest = { type: kadTypes.putValue, key: record.key, record };
    const stored: P[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    using _timer = clock.after(limits.dhtPublishTimeout, resolve);
    if (enough === 0) resolve();
    const distinct = new Map(targets.map((peer) => [hex(peer.peerId), peer])).values();
    const sent = Promise.all(
      [...distinct].map(async (peer) => {
        if (!(await this.#isStored(peer, { request, signal }))) return;
        stored.push(peer);
        if (stored.length >= enough) resolve();
      }),
    ).then(() => stored);
    await Promise.race([promise, sent]);
    return { isEnough: stored.length >= enough, stored: sent };
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
