import {
  type PeerConnection,
  PeerError,
  type PeerHost,
  type RemotePeer,
  rejectOnAbort,
} from '@posthouse/peer';
import { hex, type Libp2pAddress } from '@posthouse/protocol';
import type { KadCandidate } from '@posthouse/protocol/federation';
import type { RelayContext } from '../context.ts';
import type { AddressFilter } from './address-filter.ts';
import type { Eligibility, ExpectedPeer } from './eligibility.ts';
import { finishStream } from './finish-stream.ts';
import { PeerRefusal } from './peer-refusal.ts';
import { dhtProtocol, rpcProtocol } from './protocol-ids.ts';
import type { RelayHealth } from './relay-health.ts';
import { timeLimit } from './time-limit.ts';
import type { EligiblePeer } from './verify-descriptor.ts';

type Parts = Pick<RelayContext, 'clock' | 'limits' | 'network'>;
type Connection = PeerConnection<EligiblePeer>;

export interface DialsParts {
  readonly eligibility: Eligibility;
  readonly filter: AddressFilter;
  readonly health: RelayHealth;
  /** Aborts when the relay stops. */
  readonly stopping: AbortSignal;
}

/** The dials of this relay (07 §B5): one at a time for each relay, a few of its addresses at once. */
export class PeerDials {
  readonly #context: Parts;
  readonly #parts: DialsParts;
  readonly #isConnected: (relayId: string) => boolean;
  readonly #dials = new Map<string, Promise<Connection>>();
  /**
   * Relays that are being dialled, by Peer ID in hex: more than one if a descriptor binds the Peer
   * ID of another relay, which must not keep that one from being dialled.
   */
  readonly #expected = new Map<string, Set<string>>();
  #host: PeerHost<EligiblePeer> | undefined;

  constructor(context: Parts, parts: DialsParts, isConnected: (relayId: string) => boolean) {
    this.#context = context;
    this.#parts = parts;
    this.#isConnected = isConnected;
  }

  /** Sets the host that dials; before, no relay can be reached. */
  use(host: PeerHost<EligiblePeer>): void {
    this.#host = host;
  }

  /** Returns what is known of a peer before its handshake: which relay is being dialled. */
  expectedOf({ direction, peerId }: RemotePeer): ExpectedPeer {
    if (direction === 'inbound') return {};
    const [relayId, ...others] = this.#expected.get(hex(peerId)) ?? [];
    // If several have this Peer ID, the handshake tells which one answers; the dials compare it.
    return relayId === undefined || others.length > 0 ? { peerId } : { relayId, peerId };
  }

  /**
   * Dials a relay, unless a dial is under way, which all callers share then.
   *
   * @throws Error of the last address; the signal's reason
   */
  async dial(relayId: string, signal: AbortSignal): Promise<Connection> {
    let dial = this.#dials.get(relayId);
    if (dial === undefined) {
      dial = this.#dial(relayId).finally(() => this.#dials.delete(relayId));
      this.#dials.set(relayId, dial);
    }
    return await rejectOnAbort(signal, dial);
  }

  /**
   * Dials a peer of which only Peer ID and addresses are known; the handshake shows which relay it is
   * (07 §B4).
   *
   * @throws Error of the last address; the signal's reason
   */
  async dialUnknown({ peerId, addresses }: KadCandidate, signal: AbortSignal): Promise<Connection> {
    const dialled = addresses.map((address) => ({ ...address, peerId }));
    const connection = await this.#dialAddresses(dialled, signal);
    await this.#checkProtocols(connection, signal);
    return connection;
  }

  async #dial(relayId: string): Promise<Connection> {
    const { clock, limits } = this.#context;
    const { health, stopping } = this.#parts;
    using limit = timeLimit(clock, limits.peerDialTimeout, stopping);
    try {
      return await this.#dialCandidate(relayId, limit.signal);
    } catch (error) {
      // One that was reached in another way meanwhile gets no pause.
      const hasFailed = !stopping.aborted && !this.#isConnected(relayId);
      if (hasFailed) health.failed(relayId, wordsOf(error));
      throw error;
    }
  }

  /** Dials a relay as it is known; if that fails, as its registered endpoint has it now. */
  async #dialCandidate(relayId: string, signal: AbortSignal): Promise<Connection> {
    const { eligibility } = this.#parts;
    const known = await rejectOnAbort(signal, eligibility.candidate(relayId));
    try {
      return await this.#dialPeer(known, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      const refresh = eligibility.candidate(relayId, { isFresh: true });
      const fresh = await rejectOnAbort(signal, refresh).catch(() => known);
      const { endpoints } = known.descriptor;
      if (fresh.descriptor.endpoints.join(' ') === endpoints.join(' ')) throw error;
      return await this.#dialPeer(fresh, signal);
    }
  }

  async #dialPeer(peer: EligiblePeer, signal: AbortSignal): Promise<Connection> {
    const key = hex(peer.peerId);
    const { relayId } = peer;
    const expected = this.#expected.get(key) ?? new Set();
    this.#expected.set(key, expected.add(relayId));
    try {
      const connection = await this.#dialAddresses(peer.addresses, signal);
      if (connection.peer.relayId !== relayId) {
        throw new PeerRefusal('relay_id_expected', 'the relay is not the one that was dialled');
      }
      await this.#checkProtocols(connection, signal);
      return connection;
    } finally {
      expected.delete(relayId);
      if (expected.size === 0) this.#expected.delete(key);
    }
  }

  /** Dials the addresses of a relay, a few at once; the first connection wins. */
  async #dialAddresses(
    addresses: readonly Libp2pAddress[],
    signal: AbortSignal,
  ): Promise<Connection> {
    const { limits } = this.#context;
    const waiting = addresses.slice(0, limits.peerAddresses);
    const won = new AbortController();
    const ended = AbortSignal.any([signal, won.signal]);
    let lastError: unknown = new Error('the relay has no address');
    const worker = async () => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        try {
          return await this.#dialAddress(next, ended);
        } catch (error) {
          if (ended.aborted) break;
          lastError = error;
        }
      }
      throw lastError;
    };
    const workers = Array.from({ length: limits.peerDials }, worker);
    try {
      return await Promise.any(workers);
    } catch {
      throw signal.aborted ? signal.reason : lastError;
    } finally {
      won.abort(new Error('another address was faster'));
      // A dial that ended at the same moment is one more connection, which is kept.
      for (const one of workers) one.catch(() => {});
    }
  }

  async #dialAddress(address: Libp2pAddress, signal: AbortSignal): Promise<Connection> {
    const host = this.#host;
    if (host === undefined) throw new Error('this relay does not listen for other relays yet');
    const { peerId, port } = address;
    let lastError: unknown;
    for (const ip of await rejectOnAbort(signal, this.#parts.filter.resolve(address))) {
      try {
        return await host.dial({ host: ip, port, peerId, signal });
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        lastError = error;
      }
    }
    throw lastError;
  }

  /** Checks that the dialled relay has both protocols (07 §A9). Streams without a frame are legal. */
  async #checkProtocols(connection: Connection, signal: AbortSignal): Promise<void> {
    const { clock, limits, network } = this.#context;
    try {
      for (const protocol of [dhtProtocol(network), rpcProtocol(network)]) {
        const stream = await connection.openStream(protocol, { signal });
        void finishStream(stream, clock, limits.peerLinger);
      }
    } catch (error) {
      connection.close('does not support both protocols');
      throw error;
    }
  }
}

/** Says in words why a relay was not reached, for its operator and this one's. */
export function wordsOf(error: unknown): string {
  if (error instanceof PeerRefusal) return `refused: ${error.message}`;
  if (error instanceof PeerError) return error.message;
  return error instanceof Error ? error.message : String(error);
}
