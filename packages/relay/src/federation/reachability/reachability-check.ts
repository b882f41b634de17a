/** Finds out from other relays whether they can reach this one, for its operator. */
import { PeerError, type PeerHost, type PeerStream } from '@posthouse/peer';
import type { RelayContext } from '../../context.ts';
import { finishStream } from '../finish-stream.ts';
import { doctorProtocol } from '../protocol-ids.ts';
import { timeLimit } from '../time-limit.ts';
import type { EligiblePeer } from '../verify-descriptor.ts';
import { type DialledAddress, decodeDialBackAnswer, dialBackRequest } from './dial-back-answer.ts';

/** What one relay answered. */
export type RelayReport = { readonly relayId: string; readonly endpoint: string } & (
  | {
      readonly kind: 'dialled';
      readonly addresses: readonly DialledAddress[];
      /** Whether it names this relay to others. */
      readonly listed: boolean;
    }
  | { readonly kind: 'busy'; readonly retryAfter: number }
  /** It does not have the protocol: it is no Posthouse relay, or an older one. */
  | { readonly kind: 'not_supported' }
  | { readonly kind: 'no_answer' }
);

/** What the running relay found out. */
export interface ReachabilityReport {
  /** Other relays that the registry lists as active. */
  readonly active: number;
  /** Other relays with a connection. */
  readonly connected: number;
  /** Of these, relays that opened a connection themselves: they have reached this relay. */
  readonly inbound: number;
  /** Of the relays that were asked, in the order in which they answered. */
  readonly relays: readonly RelayReport[];
}

type Context = Pick<RelayContext, 'clock' | 'limits' | 'network' | 'random'>;

export interface ReachabilityParts {
  /** Of the relay's own connections. */
  readonly host: () => Pick<PeerHost<EligiblePeer>, 'connections'>;
  /** IDs of the other relays that the registry lists as active. */
  readonly candidates: () => readonly string[];
  /** Aborts when the relay stops. */
  readonly stopping: AbortSignal;
}

/** Milliseconds for an answer, in addition to those that the other relay has to dial. */
const answerTime = 5_000;

/** Asks connected relays, in a random order, to dial this one. */
export class ReachabilityCheck {
  readonly #context: Context;
  readonly #parts: ReachabilityParts;

  constructor(context: Context, parts: ReachabilityParts) {
    this.#context = context;
    this.#parts = parts;
  }

  /** Asks until `dialBackRelays` have dialled, every one was asked, or the time is over. */
  async run(): Promise<ReachabilityReport> {
    const { clock, limits } = this.#context;
    const open = [...this.#parts.host().connections].filter(({ isOpen }) => isOpen);
    const byRelay = new Map(open.map((connection) => [connection.peer.relayId, connection]));
    const inbound = new Set(
      open.filter(({ remote }) => remote.direction === 'inbound').map(({ peer }) => peer.relayId),
    );
    const waiting = this.#shuffled([...byRelay.values()]);
    const relays: RelayReport[] = [];
    using limit = timeLimit(clock, 2 * (limits.dialBackTimeout + answerTime), this.#parts.stopping);
    const worker = async () => {
      for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
        if (limit.signal.aborted) return;
        const report = await this.#ask(next, limit.signal);
        relays.push(report);
        if (report.kind === 'dialled') return;
      }
    };
    await Promise.all(Array.from({ length: limits.dialBackRelays }, worker));
    return {
      active: this.#parts.candidates().length,
      connected: byRelay.size,
      inbound: inbound.size,
      relays,
    };
  }

  async #ask(connection: Connection, signal: AbortSignal): Promise<RelayReport> {
    const { clock, limits, network } = this.#context;
    const { relayId, descriptor } = connection.peer;
    const endpoint = descriptor.endpoints.find((item) => item.startsWith('https:')) ?? '';
    const relay = { relayId, endpoint };
    using limit = timeLimit(clock, limits.dialBackTimeout + answerTime, signal);
    let stream: PeerStream | undefined;
    try {
      stream = await connection.openStream(doctorProtocol(network), { signal: limit.signal });
      await stream.writeFrame(dialBackRequest);
      const frame = await stream.readFrame();
      if (frame === undefined) throw new Error('the stream ended without an answer');
      const answer = decodeDialBackAnswer(frame);
      void finishStream(stream, clock, limits.peerLinger);
      if ('retry_after' in answer) {
        return { ...relay, kind: 'busy', retryAfter: answer.retry_after };
      }
      const { addresses, listed } = answer;
      return { ...relay, kind: 'dialled', addresses, listed };
    } catch (error) {
      stream?.reset();
      const isUnknown = error instanceof PeerError && error.code === 'not_supported';
      return { ...relay, kind: isUnknown ? 'not_supported' : 'no_answer' };
    }
  }

  #shuffled<T>(items: readonly T[]): T[] {
    const chances = this.#context.random(4 * items.length);
    const view = new DataView(chances.buffer, chances.byteOffset, chances.byteLength);
    return items
      .map((item, index) => ({ item, chance: view.getUint32(4 * index) }))
      .sort((a, b) => a.chance - b.chance)
      .map(({ item }) => item);
  }
}

type Connection = PeerHost<EligiblePeer>['connections'] extends ReadonlySet<infer C> ? C : never;
