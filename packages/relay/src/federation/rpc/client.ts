import { utf8 } from '@posthouse/protocol';
import {
  encodeRelayNotification,
  FrameError,
  type RelayMethodName,
  type RelayNotificationName,
  readRelayResponse,
} from '@posthouse/protocol/federation';
import { decodeUtf8, type JsonObject } from '@posthouse/protocol/json';
import type { RelayAnswer, RelayClient, RelayContext } from '../../context.ts';
import { encodeRequest } from '../../dispatch/envelope.ts';
import type { ResultValue } from '../../dispatch/json-text.ts';
import { relayCalled } from '../../observability/peer-events.ts';
import { type OpenedStream, type PeerConnections, wordsOf } from '../connections.ts';
import { finishStream } from '../finish-stream.ts';
import type { PeerFaults } from '../peer-faults.ts';
import { rpcProtocol } from '../protocol-ids.ts';
import type { RelayHealth } from '../relay-health.ts';
import { type TimeLimit, timeLimit } from '../time-limit.ts';

type Parts = Pick<RelayContext, 'clock' | 'limits' | 'log' | 'metrics' | 'network'>;

export interface RpcClientParts {
  readonly connections: PeerConnections;
  readonly health: RelayHealth;
  readonly faults: PeerFaults;
  /** Aborts when the relay stops. */
  readonly stopping: AbortSignal;
}

/** Calls other relays: one stream for each request or notification (07 §C2). */
export class RpcClient implements RelayClient {
  readonly #context: Parts;
  readonly #parts: RpcClientParts;
  /** Calls under way, or waiting for a stream, by relay ID. */
  readonly #underWay = new Map<string, number>();
  #lastId = 0;

  constructor(context: Parts, parts: RpcClientParts) {
    this.#context = context;
    this.#parts = parts;
  }

  pausedUntil(relayId: string): number | undefined {
    return this.#parts.health.pausedUntil(relayId);
  }

  async call(relayId: string, method: RelayMethodName, params: ResultValue): Promise<RelayAnswer> {
    const { clock } = this.#context;
    const started = clock.monotonic();
    this.#lastId += 1;
    const id = this.#lastId;
    const request = utf8(encodeRequest(id, method, params));
    const answer = await this.#withStream<RelayAnswer>(relayId, {
      unreachable: { kind: 'unreachable' },
      use: (opened, limit) => this.#exchange(opened, { id, request, limit }),
    });
    const milliseconds = clock.monotonic() - started;
    const code = codeOf(answer);
    relayCalled(this.#context, { relay: relayId, method, code, milliseconds });
    return answer;
  }

  async notify(relayId: string, name: RelayNotificationName, params: JsonObject): Promise<boolean> {
    const notification = utf8(encodeRelayNotification(name, params));
    return await this.#withStream(relayId, {
      unreachable: false,
      use: async ({ stream }) => {
        try {
          await stream.writeFrame(notification);
          stream.end();
          return true;
        } catch {
          stream.reset();
          return false;
        }
      },
    });
  }

  /** Opens a stream and uses it within the time limit of a call. */
  async #withStream<T>(
    relayId: string,
    {
      unreachable,
      use,
    }: {
      /** The result if it is certain that nothing was sent. */
      readonly unreachable: T;
      readonly use: (opened: OpenedStream, limit: TimeLimit) => Promise<T>;
    },
  ): Promise<T> {
    const { clock, limits, network } = this.#context;
    const { connections, health, stopping } = this.#parts;
    if (stopping.aborted || health.pausedUntil(relayId) !== undefined) return unreachable;
    const underWay = this.#underWay.get(relayId) ?? 0;
    if (underWay >= limits.relayCalls) return unreachable;
    this.#underWay.set(relayId, underWay + 1);
    using limit = timeLimit(clock, limits.relayCallTimeout, stopping);
    try {
      const protocol = rpcProtocol(network);
      const opened = await connections.openStream(relayId, protocol, limit.signal).catch(() => {
        if (limit.isOver) health.failed(relayId, 'accepted no stream in time');
        return undefined;
      });
      return opened === undefined ? unreachable : await use(opened, limit);
    } finally {
      this.#release(relayId);
    }
  }

  #release(relayId: string): void {
    const left = (this.#underWay.get(relayId) ?? 1) - 1;
    if (left > 0) this.#underWay.set(relayId, left);
    else this.#underWay.delete(relayId);
  }

  async #exchange(
    { stream, connection }: OpenedStream,
    { id, request, limit }: { id: number; request: Uint8Array; limit: TimeLimit },
  ): Promise<RelayAnswer> {
    const { clock, limits } = this.#context;
    const { connections, health, stopping } = this.#parts;
    const { relayId } = connection.peer;
    try {
      await stream.writeFrame(request);
      stream.end();
      const frame = await stream.readFrame();
      if (frame === undefined) throw new Error('the stream ended without a response');
      finishStream(stream, clock, limits.peerLinger);
      health.succeeded(relayId);
      return this.#read(relayId, frame, id);
    } catch (error) {
      stream.reset();
      if (error instanceof FrameError) {
        this.#parts.faults.add(relayId, 'frame');
        return { kind: 'invalid', why: error.message };
      }
      if (stopping.aborted) return { kind: 'unknown' };
      // Every request may be repeated (07 §C4, §C8), so the end of one process delays no call.
      const protocol = rpcProtocol(this.#context.network);
      const other = await connections.openInstead(connection, protocol, limit.signal);
      if (other !== undefined) return await this.#exchange(other, { id, request, limit });
      if (limit.isOver) connections.retire(connection);
      // Another process of that relay may answer the next call in time.
      if (limit.isOver && connections.isConnected(relayId)) return { kind: 'unknown' };
      health.failed(relayId, limit.isOver ? 'did not answer in time' : wordsOf(error));
      return { kind: 'unknown' };
    }
  }

  #read(relayId: string, frame: Uint8Array, id: number): RelayAnswer {
    let text: string;
    try {
      text = decodeUtf8(frame);
    } catch {
      this.#parts.faults.add(relayId, 'response');
      return { kind: 'invalid', why: 'not UTF-8' };
    }
    const answer = readRelayResponse(text, id);
    if (answer.kind === 'invalid') this.#parts.faults.add(relayId, 'response');
    return answer;
  }
}

/** Labels of metrics: a code that this relay does not know is the peer's text. */
function codeOf(answer: RelayAnswer): string {
  if (answer.kind === 'result') return 'ok';
  if (answer.kind !== 'refused') return answer.kind;
  return /^[a-z_]+$/.test(answer.code) ? answer.code : 'unknown_code';
}
