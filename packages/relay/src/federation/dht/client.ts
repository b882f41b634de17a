import type { PeerStream } from '@posthouse/peer';
import {
  checkKadReply,
  encodeKadMessage,
  type KadMessage,
  type KadRequest,
  kadTypes,
} from '@posthouse/protocol/federation';
import { BoundedMap } from '../../bounded-map.ts';
import type { RelayContext } from '../../context.ts';
import { dhtAsked } from '../../observability/peer-events.ts';
import type { PeerConnections } from '../connections.ts';
import { finishStream } from '../finish-stream.ts';
import type { PeerFaults } from '../peer-faults.ts';
import { dhtProtocol } from '../protocol-ids.ts';
import type { RelayHealth } from '../relay-health.ts';
import type { KadDecoder } from './decoder.ts';
import { dhtFaultOf, dhtTypeName } from './messages.ts';
import { RequestPace } from './request-pace.ts';

export interface DhtClientParts {
  readonly connections: PeerConnections;
  readonly health: RelayHealth;
  readonly faults: PeerFaults;
  readonly decoder: Pick<KadDecoder, 'decode'>;
  /** Called after each valid answer and each failure to a lookup's request. */
  readonly onOutcome: (relayId: string, isAnswered: boolean) => void;
}

/** Most entries of `closerPeers` that are used; the lookup adds the nearest of them. */
const mostNamed = 40;

/** Sends DHT requests to other relays, at the pace that each allows. */
export class DhtClient {
  readonly #context: RelayContext;
  readonly #parts: DhtClientParts;
  /**
   * Monotonic milliseconds until which a relay is sent no such request, after an invalid or no
   * answer. Routes apart: a relay above its quota of them still answers questions.
   */
  readonly #paused: Record<'questions' | 'routes', BoundedMap<string, number>>;
  readonly #pace: Record<'questions' | 'routes', RequestPace>;

  constructor(context: RelayContext, parts: DhtClientParts) {
    const { clock, limits } = context;
    this.#context = context;
    this.#parts = parts;
    const keys = limits.federationRegistryRelays;
    this.#paused = { questions: new BoundedMap(keys), routes: new BoundedMap(keys) };
    const { dhtAskRate, dhtAskBurst, dhtSendRate, dhtSendBurst } = limits;
    this.#pace = {
      questions: new RequestPace({ clock, keys, rate: dhtAskRate, burst: dhtAskBurst }),
      routes: new RequestPace({ clock, keys, rate: dhtSendRate, burst: dhtSendBurst }),
    };
  }

  /** Ends the pause of a relay that has connected again. */
  resume(relayId: string): void {
    this.#paused.questions.delete(relayId);
    this.#paused.routes.delete(relayId);
  }

  /** Sends one request; `undefined` without a valid answer, after which the relay has a pause. */
  async ask(
    relayId: string,
    request: KadRequest,
    signal: AbortSignal,
  ): Promise<KadMessage | undefined> {
    const { clock, limits } = this.#context;
    const { faults, health, onOutcome } = this.#parts;
    const type = dhtTypeName(request.type);
    const kind = request.type === kadTypes.putValue ? 'routes' : 'questions';
    const pausedUntil = this.#paused[kind].get(relayId) ?? 0;
    const isPaused = health.pausedUntil(relayId) !== undefined || clock.monotonic() < pausedUntil;
    if (isPaused || !(await this.#pace[kind].turn(relayId, signal))) {
      dhtAsked(this.#context, { type, outcome: 'paused' });
      return undefined;
    }
    try {
      const reply = await this.#exchange(relayId, request, signal);
      dhtAsked(this.#context, { type, outcome: 'ok' });
      health.succeeded(relayId);
      onOutcome(relayId, true);
      return reply;
    } catch (error) {
      const fault = dhtFaultOf(error);
      if (fault !== undefined) faults.add(relayId, fault);
      this.#paused[kind].set(relayId, clock.monotonic() + limits.dhtPause * 1_000);
      dhtAsked(this.#context, { type, outcome: 'failed' });
      if (kind === 'questions') onOutcome(relayId, false);
      return undefined;
    }
  }

  /** @throws FrameError, ProtocolError for an invalid answer; the error of the connection */
  async #exchange(relayId: string, request: KadRequest, signal: AbortSignal): Promise<KadMessage> {
    const { connections } = this.#parts;
    const protocol = dhtProtocol(this.#context.network);
    let opened = await connections.openStream(relayId, protocol, signal);
    for (;;) {
      try {
        return await this.#exchangeOn(opened.stream, { relayId, request });
      } catch (error) {
        opened.stream.reset();
        // Every request may be repeated, so the end of one process of that relay delays no lookup.
        const other = await connections.openInstead(opened.connection, protocol, signal);
        if (other === undefined) throw error;
        opened = other;
      }
    }
  }

  async #exchangeOn(
    stream: PeerStream,
    { relayId, request }: { readonly relayId: string; readonly request: KadRequest },
  ): Promise<KadMessage> {
    const { clock, limits } = this.#context;
    await stream.writeFrame(encodeKadMessage(request));
    const frame = await stream.readFrame();
    if (frame === undefined) throw new Error('the stream ended without an answer');
    const bounds = { peers: mostNamed, addresses: limits.peerAddresses };
    const reply = await this.#parts.decoder.decode(relayId, frame, bounds);
    checkKadReply(request, reply);
    void finishStream(stream, clock, limits.peerLinger);
    return reply;
  }
}
