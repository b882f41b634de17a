import { errorCatalogue, ProtocolError, rpcErrors } from '@posthouse/protocol';
import type { JsonValue } from '@posthouse/protocol/json';
import type { RawData, WebSocket } from 'ws';
import type { RelayContext } from '../context.ts';
import type { ConnectionBinding } from '../dispatch/call.ts';
import type { Answer, Dispatcher } from '../dispatch/dispatcher.ts';
import {
  encodeFailure,
  encodeRefusal,
  encodeSuccess,
  fitsMessage,
  type RpcId,
  readEnvelope,
} from '../dispatch/envelope.ts';
import type { RateLimiter } from '../dispatch/rate-limiter.ts';
import type { Hub } from '../notifications/hub.ts';
import { connectionEnded, connectionOpened, type EndReason } from '../observability/events.ts';
import type { Session } from '../sessions/session.ts';
import { BoundSession } from './bound-session.ts';

/** Close codes of 02 §3.3 and RFC 6455 §7.4.1; the library closes with 1009 by itself. */
const closeCodes = { goingAway: 1001, binary: 1003 } as const;

/** Longest pause before a paused connection is checked again, in seconds. */
const longestPause = 30;

export interface ConnectionParts {
  readonly context: RelayContext;
  readonly dispatcher: Dispatcher;
  readonly hub: Hub;
  /** Origin of the address the client connected to. */
  readonly origin: string;
  /** Client address that calls without a session are charged to. */
  readonly address: string;
  /** Limits the bytes of requests read, by address. */
  readonly requestBytes: RateLimiter;
  readonly ended: () => void;
}

/** One client's WebSocket: its requests in progress, its binding, and its notifications. */
export class WebSocketConnection {
  readonly #socket: WebSocket;
  readonly #parts: ConnectionParts;
  readonly #outstanding = new Set<RpcId>();
  #bound: BoundSession | undefined;
  #isAlive = true;
  #isStopping = false;
  #isClosed = false;
  /** Present while reading is paused because the peer sent too much. */
  #pause: Disposable | undefined;
  #endReason: EndReason | undefined;

  constructor(socket: WebSocket, parts: ConnectionParts) {
    this.#socket = socket;
    this.#parts = parts;
    connectionOpened(parts.context);
    socket.on('message', (data, isBinary) => this.#receive(data, isBinary));
    socket.on('ping', (data) => this.#writeOrEnd(() => socket.pong(data)));
    socket.on('pong', () => {
      this.#isAlive = true;
    });
    // After oversized messages and invalid frames the library closes by itself (1009, 1002).
    socket.on('error', () => {
      this.#endReason ??= 'connection error';
    });
    socket.on('close', () => this.#closed());
  }

  /** Pings the peer; ends the connection if it did not answer the previous ping. */
  checkAlive(): void {
    // While paused, a pong cannot be read.
    if (this.#pause !== undefined) return;
    if (!this.#isAlive) {
      this.#end('peer does not answer pings');
      return;
    }
    this.#isAlive = false;
    this.#socket.ping();
  }

  /** Accepts no more requests, answers those in progress, then closes with 1001. */
  stop(): void {
    this.#isStopping = true;
    this.#resume();
    this.#closeWhenIdle();
  }

  /** Ends the connection at once. */
  terminate(): void {
    this.#end('relay stops');
  }

  #receive(data: RawData, isBinary: boolean): void {
    if (this.#isStopping) return;
    if (isBinary) {
      this.#isStopping = true;
      this.#endReason ??= 'binary message';
      this.#socket.close(closeCodes.binary, 'binary messages are not used');
      return;
    }
    this.#pauseFor((data as Buffer).length);
    const envelope = readEnvelope(data as Buffer);
    if (envelope.kind === 'refused') {
      this.#send(envelope.answer);
      return;
    }
    const { id, method, params } = envelope;
    if (this.#outstanding.has(id)) {
      this.#send(
        encodeRefusal(id, rpcErrors.invalid_request, 'a request with this id is in progress'),
      );
      return;
    }
    if (this.#outstanding.size >= this.#parts.context.limits.outstandingRequests) {
      const busy = new ProtocolError('rate_limited', 'too many requests in progress');
      this.#send(encodeFailure(id, busy));
      return;
    }
    this.#outstanding.add(id);
    void this.#answer(id, method, params);
  }

  /**
   * Charges the address for received bytes, and pauses reading while it is over its limit: parsing
   * costs work before the sender is authenticated. Backpressure holds messages back; none is lost.
   */
  #pauseFor(bytes: number): void {
    const { requestBytes, address, context } = this.#parts;
    const wait = requestBytes.spend(address, bytes);
    if (wait === 0 || this.#pause !== undefined) return;
    this.#socket.pause();
    this.#pause = context.clock.after(Math.min(wait, longestPause) * 1_000, () => {
      this.#resume();
      this.#pauseFor(0);
    });
  }

  #resume(): void {
    this.#pause?.[Symbol.dispose]();
    this.#pause = undefined;
    this.#isAlive = true;
    this.#socket.resume();
  }

  async #answer(id: RpcId, method: string, params: JsonValue): Promise<void> {
    const { dispatcher, origin, address } = this.#parts;
    const connection = this;
    let wasBound = false;
    const credentials: ConnectionBinding = {
      get bound() {
        return connection.#bound;
      },
      bind(session) {
        wasBound = true;
        connection.#bind(session);
      },
      end(session) {
        if (connection.#bound?.session.id === session.id) connection.#bound.revoke();
      },
      async setSubscriptions(request, confirm) {
        await connection.#bound?.setSubscriptions(request, confirm);
      },
    };
    const answer = await dispatcher.answer({
      method,
      params: () => params,
      form: 'object',
      origin,
      address,
      credentials,
    });
    this.#outstanding.delete(id);
    this.#send(this.#encode(id, answer));
    // The success response goes first, then notifications start (02 §12.5).
    if (wasBound) this.#bound?.enable();
    if (this.#isStopping) this.#closeWhenIdle();
  }

  #bind(session: Session): void {
    // Otherwise a connection that closed meanwhile would stay in the hub for ever.
    if (this.#isClosed) return;
    if (this.#bound !== undefined) {
      this.#bound.renew(session);
      return;
    }
    const { context, hub } = this.#parts;
    this.#bound = new BoundSession(session, {
      clock: context.clock,
      hub,
      send: (text, sent) => this.#send(text, sent),
    });
  }

  #encode(id: RpcId, answer: Answer): string {
    if (!answer.ok) return encodeFailure(id, answer.error);
    const text = encodeSuccess(id, answer.result);
    if (fitsMessage(text)) return text;
    this.#parts.context.log.error({ id }, 'answer exceeds 1 MiB');
    return encodeRefusal(id, errorCatalogue.internal_error.rpc, 'answer too large');
  }

  #send(text: string, sent?: () => void): void {
    this.#writeOrEnd(() => this.#socket.send(text, sent));
  }

  /** Writes, unless the peer's send buffer is over the limit; then ends the connection. */
  #writeOrEnd(write: () => void): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    if (this.#socket.bufferedAmount > this.#parts.context.limits.sendBufferBytes) {
      this.#end('peer reads too slowly');
      return;
    }
    write();
  }

  #closeWhenIdle(): void {
    if (this.#outstanding.size > 0) return;
    this.#endReason ??= 'relay stops';
    this.#socket.close(closeCodes.goingAway, 'relay stops');
  }

  #end(reason: EndReason): void {
    this.#endReason ??= reason;
    this.#socket.terminate();
  }

  #closed(): void {
    this.#isClosed = true;
    this.#pause?.[Symbol.dispose]();
    this.#bound?.release();
    connectionEnded(this.#parts.context, this.#endReason ?? 'closed by peer');
    this.#parts.ended();
  }
}
