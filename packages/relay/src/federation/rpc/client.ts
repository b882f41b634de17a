import { once } from 'node:events';
import { PeerError, type PeerStream } from '@posthouse/peer';
import { ProtocolError, utf8 } from '@posthouse/protocol';
import {
  encodeRelayNotification,
  FrameError,
  type RelayMethodName,
  type RelayNotificationName,
  readRelayResponse,
  readRelayResponseInSteps,
} from '@posthouse/protocol/federation';
import { JsonError, type JsonObject, prepareCanonicalJson } from '@posthouse/protocol/json';
import { BoundedMap } from '../../bounded-map.ts';
import type { RelayAnswer, RelayClient, RelayContext } from '../../context.ts';
import { encodeRequest } from '../../dispatch/envelope.ts';
import type { ResultValue } from '../../dispatch/json-text.ts';
import type { RelayTexts } from '../../dispatch/relay-texts.ts';
import type { Steps } from '../../dispatch/slices.ts';
import { relayCalled, relayCallReset } from '../../observability/peer-events.ts';
import type { OpenedStream, PeerConnections } from '../connections.ts';
import { finishStream } from '../finish-stream.ts';
import { wordsOf } from '../peer-dials.ts';
import type { PeerFaults } from '../peer-faults.ts';
import { rpcProtocol } from '../protocol-ids.ts';
import type { RelayHealth } from '../relay-health.ts';
import { type TimeLimit, timeLimit } from '../time-limit.ts';
import { type CallKind, type CallPlace, CallWindow } from './call-window.ts';

type Parts = Pick<RelayContext, 'clock' | 'limits' | 'log' | 'metrics' | 'network'>;

export interface RpcClientParts {
  readonly connections: PeerConnections;
  readonly health: RelayHealth;
  readonly faults: PeerFaults;
  /** Reads the answers. */
  readonly texts: RelayTexts;
  /** Aborts when the relay stops. */
  readonly stopping: AbortSignal;
}

/** One stream that is used for a request or notification. */
interface Use extends OpenedStream {
  readonly limit: TimeLimit;
  readonly place: CallPlace;
  /** Whether it is sent again if the relay resets the stream because there are too many. */
  readonly mayRepeat: boolean;
  /** Whether another connection was lost before, so that this one has less than the whole time. */
  readonly isInstead: boolean;
}

interface Request {
  readonly id: number;
  /** The whole request. */
  readonly bytes: Uint8Array;
}

/** A request or notification. */
interface Sending<T> {
  readonly kind: CallKind;
  /** The result if it is certain that nothing was sent. */
  readonly unsent: T;
  /** The result if a stream was reset, and it is not sent again. */
  readonly unknown: T;
  /** Returns `repeat` if the relay reset the stream because there are too many. */
  readonly use: (use: Use) => Promise<T | typeof repeat>;
}

const repeat = Symbol('repeat');

/** Calls other relays: one stream for each request or notification (07 §C2). */
export class RpcClient implements RelayClient {
  readonly #context: Parts;
  readonly #parts: RpcClientParts;
  readonly #windows: BoundedMap<string, CallWindow>;
  #lastId = 0;

  constructor(context: Parts, parts: RpcClientParts) {
    this.#context = context;
    this.#parts = parts;
    this.#windows = new BoundedMap(context.limits.federationRegistryRelays);
  }

  callsAtOnce(relayId: string): number {
    return this.#windows.get(relayId)?.size ?? this.#context.limits.relayCallsFirst;
  }

  pausedUntil(relayId: string): number | undefined {
    return this.#parts.health.pausedUntil(relayId);
  }

  async call(relayId: string, method: RelayMethodName, params: ResultValue): Promise<RelayAnswer> {
    const { clock } = this.#context;
    const started = clock.monotonic();
    this.#lastId += 1;
    const id = this.#lastId;
    const bytes = utf8(encodeRequest(id, method, params));
    const answer = await this.#send<RelayAnswer>(relayId, {
      kind: method === 'message.deliver' ? 'delivery' : 'query',
      unsent: { kind: 'unreachable' },
      unknown: { kind: 'unknown' },
      use: (use) => this.#exchange(use, { id, bytes }),
    });
    const milliseconds = clock.monotonic() - started;
    const code = codeOf(answer);
    relayCalled(this.#context, { relay: relayId, method, code, milliseconds });
    return answer;
  }

  async notify(relayId: string, name: RelayNotificationName, params: JsonObject): Promise<boolean> {
    const notification = utf8(encodeRelayNotification(name, params));
    return await this.#send(relayId, {
      kind: 'delivery',
      unsent: false,
      unknown: false,
      use: async ({ stream, place }) => {
        try {
          await stream.writeFrame(notification);
          this.#finish(stream, place);
          return true;
        } catch {
          stream.reset();
          place[Symbol.dispose]();
          return false;
        }
      },
    });
  }

  /**
   * Sends within the window. What waits for a place here says nothing about the other relay, which
   * has its whole time once there is one; no place is taken after as long again.
   */
  async #send<T>(relayId: string, { kind, unsent, unknown, use }: Sending<T>): Promise<T> {
    const { clock, limits } = this.#context;
    const { health, stopping } = this.#parts;
    const window = this.#windowOf(relayId);
    if (stopping.aborted || window.calls >= limits.relayCalls) return unsent;
    using waiting = timeLimit(clock, limits.relayCallTimeout, stopping);
    for (let repeats = 0; ; repeats += 1) {
      const otherwise = repeats === 0 ? unsent : unknown;
      if (health.pausedUntil(relayId) !== undefined) return otherwise;
      const place = await window.take(kind, waiting.signal).catch(() => undefined);
      if (place === undefined) return otherwise;
      using limit = timeLimit(clock, limits.relayCallTimeout, stopping);
      const opened = await this.#open(relayId, limit);
      if (opened === undefined) {
        place[Symbol.dispose]();
        return otherwise;
      }
      const mayRepeat = repeats < limits.relayCallRepeats;
      const result = await use({ ...opened, limit, place, mayRepeat, isInstead: false });
      if (result !== repeat) return result;
      // The window is smaller now; a second reset may be for a quota, which needs time.
      if (repeats > 0) await this.#pause(relayId, repeats, waiting.signal);
    }
  }

  /** Waits before a call is sent again, twice as long each time, unless the relay failed. */
  async #pause(relayId: string, times: number, signal: AbortSignal): Promise<void> {
    const { clock, limits } = this.#context;
    if (this.#parts.health.pausedUntil(relayId) !== undefined) return;
    using pause = timeLimit(clock, limits.relayCallPause * 2 ** (times - 1), signal);
    if (!pause.signal.aborted) await once(pause.signal, 'abort');
  }

  /** Opens a stream, unless the relay has failed, perhaps while a place in the window was awaited. */
  async #open(relayId: string, limit: TimeLimit): Promise<OpenedStream | undefined> {
    const { connections, health } = this.#parts;
    if (health.pausedUntil(relayId) !== undefined) return undefined;
    const protocol = rpcProtocol(this.#context.network);
    return await connections.openStream(relayId, protocol, limit.signal).catch(() => {
      if (limit.isOver) health.failed(relayId, 'accepted no stream in time');
      return undefined;
    });
  }

  #windowOf(relayId: string): CallWindow {
    let window = this.#windows.get(relayId);
    if (window === undefined) {
      window = new CallWindow(this.#context);
      this.#windows.set(relayId, window);
    }
    return window;
  }

  /** Its place in the window is free once both sides have ended, as the peer counts streams. */
  #finish(stream: PeerStream, place: CallPlace): void {
    const { clock, limits } = this.#context;
    void finishStream(stream, clock, limits.peerLinger).then(() => place[Symbol.dispose]());
  }

  async #exchange(use: Use, request: Request): Promise<RelayAnswer | typeof repeat> {
    const { stream, connection, place } = use;
    const { relayId } = connection.peer;
    let frame: Uint8Array | undefined;
    try {
      await stream.writeFrame(request.bytes);
      stream.end();
      frame = await stream.readFrame();
      if (frame === undefined) throw new Error('the stream ended without a response');
    } catch (error) {
      stream.reset();
      const next = await this.#afterError(error, use);
      if (next !== repeat && 'stream' in next) {
        return await this.#exchange({ ...use, ...next, isInstead: true }, request);
      }
      place[Symbol.dispose]();
      return next;
    }
    this.#windowOf(relayId).answered(place);
    this.#parts.health.succeeded(relayId);
    try {
      // The stream is open meanwhile: the wire counts the frame, and the window the call.
      return await this.#read(relayId, frame, request.id);
    } finally {
      this.#finish(stream, place);
    }
  }

  /** Returns another stream to send the request on, or what follows without one. */
  async #afterError(
    error: unknown,
    { connection, limit, place, mayRepeat, isInstead }: Use,
  ): Promise<OpenedStream | RelayAnswer | typeof repeat> {
    const { connections, faults, health, stopping } = this.#parts;
    const { relayId } = connection.peer;
    const window = this.#windowOf(relayId);
    if (error instanceof FrameError) {
      faults.add(relayId, 'frame');
      return { kind: 'invalid', why: error.message };
    }
    if (stopping.aborted) return { kind: 'unknown' };
    // Every request may be repeated (07 §C4, §C8), so the end of one process delays no call.
    const protocol = rpcProtocol(this.#context.network);
    const other = await connections.openInstead(connection, protocol, limit.signal);
    if (other !== undefined) return other;
    // It may allow fewer streams at once (07 §C2), which is no failure.
    if (connection.isOpen && isReset(error) && place.atOnce > 1) {
      window.reset(place);
      relayCallReset(this.#context, { relay: relayId, atOnce: place.atOnce });
      if (mayRepeat) return repeat;
    }
    window.failed();
    if (limit.isOver && isInstead) return { kind: 'unknown' };
    if (limit.isOver) connections.retire(connection);
    // Another process of that relay may answer the next call in time.
    if (limit.isOver && connections.isConnected(relayId)) return { kind: 'unknown' };
    health.failed(relayId, limit.isOver ? 'did not answer in time' : wordsOf(error));
    return { kind: 'unknown' };
  }

  async #read(relayId: string, frame: Uint8Array, id: number): Promise<RelayAnswer> {
    const { faults, stopping, texts } = this.#parts;
    const answer = await readAnswer(texts, { relayId, frame, id, signal: stopping });
    if (answer.kind === 'invalid') faults.add(relayId, 'response');
    return answer;
  }
}

/** Reads an answer, a large one in steps. */
async function readAnswer(
  texts: RelayTexts,
  {
    relayId,
    frame,
    id,
    signal,
  }: {
    readonly relayId: string;
    readonly frame: Uint8Array;
    readonly id: number;
    readonly signal: AbortSignal;
  },
): Promise<RelayAnswer> {
  try {
    using _room = await texts.takeRoom(relayId, frame, signal);
    return await texts.read<RelayAnswer>(relayId, frame, {
      atOnce: (text) => readRelayResponse(text, id),
      inSteps: (text) => readLargeAnswer(text, id),
      signal,
    });
  } catch (error) {
    if (signal.aborted) return { kind: 'unknown' };
    if (error instanceof JsonError) return { kind: 'invalid', why: 'not UTF-8' };
    if (error instanceof ProtocolError) return { kind: 'invalid', why: error.message };
    throw error;
  }
}

/** Formats the result too, for the caller that verifies it. */
function* readLargeAnswer(text: string, id: number): Steps<RelayAnswer> {
  const answer = yield* readRelayResponseInSteps(text, id);
  if (answer.kind === 'result') yield* prepareCanonicalJson(answer.value);
  return answer;
}

function isReset(error: unknown): boolean {
  return error instanceof PeerError && error.code === 'reset';
}

/** Labels of metrics: a code that this relay does not know is the peer's text. */
function codeOf(answer: RelayAnswer): string {
  if (answer.kind === 'result') return 'ok';
  if (answer.kind !== 'refused') return answer.kind;
  return /^[a-z_]+$/.test(answer.code) ? answer.code : 'unknown_code';
}
