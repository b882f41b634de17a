/** Dials other relays that ask for it, so that their operators know whether they can be reached. */
import { isIP } from 'node:net';
import {
  type PeerConnection,
  PeerError,
  type PeerHost,
  type PeerStream,
  rejectOnAbort,
} from '@posthouse/peer';
import type { Libp2pAddress } from '@posthouse/protocol';
import { FrameError, formatMultiaddr } from '@posthouse/protocol/federation';
import { BoundedMap } from '../../bounded-map.ts';
import type { RelayContext } from '../../context.ts';
import { RateLimiter } from '../../dispatch/rate-limiter.ts';
import { dialledBack } from '../../observability/peer-events.ts';
import type { AddressFilter } from '../address-filter.ts';
import type { DhtTable } from '../dht/table.ts';
import type { Eligibility } from '../eligibility.ts';
import type { PeerFaults } from '../peer-faults.ts';
import { timeLimit } from '../time-limit.ts';
import type { EligiblePeer } from '../verify-descriptor.ts';
import {
  type DialBackAnswer,
  type DialledAddress,
  type DialOutcome,
  encodeDialBackAnswer,
} from './dial-back-answer.ts';

type Context = Pick<RelayContext, 'clock' | 'limits' | 'log' | 'metrics'>;

export interface DialBackParts {
  readonly eligibility: Pick<Eligibility, 'find'>;
  readonly faults: Pick<PeerFaults, 'add'>;
  readonly table: Pick<DhtTable, 'closest'>;
  readonly filter: Pick<AddressFilter, 'resolve'>;
  /** Of the relay's connections: a connection that the asker admits must be this relay's. */
  readonly host: () => Pick<PeerHost<EligiblePeer>, 'dial'>;
  /** Aborts when the relay stops. */
  readonly stopping: AbortSignal;
}

/** Requests of one relay in a second, and at once; most are answered that it has to wait. */
const requests = { rate: 1, burst: 10 } as const;

/** IP addresses dialled of one name: usually one of each family. */
const addressesOfName = 2;

/**
 * Serves requests to be dialled. The request names no address: only those of the asker's verified
 * descriptor are dialled, which this relay may dial anyway. Bounded for each relay and in all.
 */
export class DialBackServer {
  readonly #context: Context;
  readonly #parts: DialBackParts;
  /** When each relay was last dialled, monotonic milliseconds. */
  readonly #last: BoundedMap<string, number>;
  readonly #requests: RateLimiter;
  #running = 0;
  /** Ends with the last lookup of a name. */
  #lookups: Promise<unknown> = Promise.resolve();

  constructor(context: Context, parts: DialBackParts) {
    this.#context = context;
    this.#parts = parts;
    const { clock, limits } = context;
    const keys = limits.federationRegistryRelays;
    this.#last = new BoundedMap(keys);
    this.#requests = new RateLimiter({ ...requests, clock, keys });
  }

  /**
   * Serves one stream: an empty frame, its answer, and the end; anything else, and more requests than
   * it answers at all, is reset.
   */
  async serve(stream: PeerStream, { peer }: PeerConnection<EligiblePeer>): Promise<void> {
    const { relayId } = peer;
    if (this.#requests.take(relayId) > 0) return stream.reset();
    try {
      const frame = await stream.readFrame();
      if (frame === undefined) return;
      if (frame.length > 0) throw new FrameError('invalid');
      stream.expectEnd();
      const answer = await this.#answer(relayId, stream.signal);
      if (answer === undefined) return stream.reset();
      await stream.writeFrame(encodeDialBackAnswer(answer));
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#parts.faults.add(relayId, 'frame');
      stream.reset();
    }
  }

  /** Dials the asker unless a limit is reached; `undefined` if it is no longer eligible. */
  async #answer(relayId: string, asking: AbortSignal): Promise<DialBackAnswer | undefined> {
    const { clock, limits } = this.#context;
    const peer = this.#parts.eligibility.find(relayId);
    if (peer === undefined) return undefined;
    const wait = this.#waitOf(relayId);
    dialledBack(this.#context, { relay: relayId, outcome: wait > 0 ? 'busy' : 'dialled' });
    if (wait > 0) return { retry_after: wait };
    this.#running += 1;
    using limit = timeLimit(clock, limits.dialBackTimeout, this.#parts.stopping, asking);
    try {
      const { addresses } = peer;
      const dialled = await Promise.all(
        addresses
          .slice(0, limits.peerAddresses)
          .map((address) => this.#dialAddress(peer, address, limit.signal)),
      );
      // The nearest to a relay's own Peer ID is that relay, if the table has it.
      const [nearest] = this.#parts.table.closest(peer.peerId, 1);
      const listed = nearest?.relayId === relayId;
      return { addresses: dialled, listed };
    } finally {
      this.#running -= 1;
    }
  }

  /** Seconds that the asker has to wait; 0 if it is dialled now, which is noted. */
  #waitOf(relayId: string): number {
    const { clock, limits } = this.#context;
    if (this.#running >= limits.dialBacks) return Math.ceil(limits.dialBackTimeout / 1_000);
    const now = clock.monotonic();
    const last = this.#last.get(relayId);
    const wait = last === undefined ? 0 : last + limits.dialBackPause * 1_000 - now;
    if (wait > 0) return Math.ceil(wait / 1_000);
    this.#last.set(relayId, now);
    return 0;
  }

  async #dialAddress(
    peer: EligiblePeer,
    address: Libp2pAddress,
    signal: AbortSignal,
  ): Promise<DialledAddress> {
    const { family, host: name, port } = address;
    let outcome: DialOutcome = 'refused';
    try {
      const found = await this.#resolve(address, signal);
      for (const host of found.slice(0, addressesOfName)) {
        outcome = await this.#dial(peer, { host, port }, signal);
        if (outcome === 'reached') break;
      }
    } catch {
      // The asker is not told whether a name is unknown here, or its address refused.
      outcome = signal.aborted ? 'timed_out' : 'refused';
    }
    return { address: formatMultiaddr({ family, host: name, port }), outcome };
  }

  /**
   * Looks one name up after another, of all askers: an asker's DNS can be slow on purpose, lookups
   * cannot be ended, and few fit into the process at once, with those of this relay's own dials.
   */
  async #resolve(address: Libp2pAddress, signal: AbortSignal): Promise<string[]> {
    const { filter } = this.#parts;
    if (isIP(address.host) !== 0) return await filter.resolve(address);
    const found = this.#lookups.then(async () => {
      signal.throwIfAborted();
      return await filter.resolve(address);
    });
    this.#lookups = found.catch(() => {});
    return await rejectOnAbort(signal, found);
  }

  /** Makes a new connection with the whole handshake, and ends it. */
  async #dial(
    { relayId, peerId }: EligiblePeer,
    at: { readonly host: string; readonly port: number },
    signal: AbortSignal,
  ): Promise<DialOutcome> {
    try {
      const connection = await this.#parts.host().dial({ ...at, peerId, signal });
      void this.#end(connection);
      return connection.peer.relayId === relayId ? 'reached' : 'wrong_peer';
    } catch (error) {
      const code = error instanceof PeerError ? error.code : undefined;
      if (code === 'wrong_peer' || code === 'own_peer') return 'wrong_peer';
      return signal.aborted || code === 'timeout' ? 'timed_out' : 'refused';
    }
  }

  /** Ends a connection without harm to a request that the asker has begun on it. */
  async #end(connection: PeerConnection<EligiblePeer>): Promise<void> {
    const { clock, limits } = this.#context;
    using grace = timeLimit(clock, limits.relayCallTimeout, this.#parts.stopping);
    await connection.drain('the address was tried', grace.signal);
  }
}
