import type { Duplex } from 'node:stream';
import { errorCatalogue } from '@posthouse/protocol';
import type { RawData, WebSocket } from 'ws';
import type { RelayContext } from '../context.ts';
import { refusalPause } from '../dispatch/allowances.ts';
import type { ConnectionBinding } from '../dispatch/call.ts';
import type { Answer, Dispatcher } from '../dispatch/dispatcher.ts';
import {
  encodeFailure,
  encodeRefusal,
  encodeSuccess,
  fitsMessage,
  type RpcId,
  type RpcRequest,
} from '../dispatch/envelope.ts';
import type { Hub } from '../notifications/hub.ts';
import { connectionEnded, connectionOpened, type EndReason } from '../observability/events.ts';
import type { Session } from '../sessions/session.ts';
import { BoundSession } from './bound-session.ts';
import type { ByteAccounts } from './byte-accounts.ts';
import type { ByteHold, ByteOwner } from './byte-ledger.ts';
import { GatheredChunks } from './gathered-chunks.ts';
import { IncomingBytes } from './incoming-bytes.ts';
import { IncomingRequests, type ReceivedText } from './incoming-requests.ts';
import { Liveness } from './liveness.ts';
import { OutgoingBytes } from './outgoing-bytes.ts';
import { UnboundDeadline } from './unbound-deadline.ts';

/** Close codes of 02 §3.3 and RFC 6455 §7.4.1; the library closes with 1009 by itself. */
const closeCodes = { goingAway: 1001, binary: 1003, policy: 1008, tryAgainLater: 1013 } as const;
/** Bytes that a peer may still send after the relay closed: as many as the largest message has. */
const bytesAfterClose = 1_048_576;

export interface ConnectionParts {
  readonly context: RelayContext;
  readonly dispatcher: Dispatcher;
  readonly hub: Hub;
  /** Origin of the address the client connected to. */
  readonly origin: string;
  /** Client address that calls without a session are charged to. */
  readonly address: string;
  readonly bytes: ByteAccounts;
  /** Called with the account when the connection has a session, without it when that ended. */
  readonly sessionChanged: (account: string | undefined) => void;
  readonly ended: () => void;
}

/** One client's WebSocket: its answers, its binding, and its notifications. */
export class WebSocketConnection {
  readonly #socket: WebSocket;
  readonly #stream: Duplex;
  readonly #parts: ConnectionParts;
  readonly #chunks: GatheredChunks;
  readonly #incoming: IncomingBytes;
  readonly #outgoing: OutgoingBytes;
  readonly #requests: IncomingRequests;
  /** Requests that started and wait for a turn: those read meanwhile begin after them. */
  #awaitingTurn = 0;
  #bound: BoundSession | undefined;
  readonly #binding: ConnectionBinding = this.#makeBinding();
  readonly #liveness: Liveness;
  readonly #unboundDeadline: UnboundDeadline;
  #pings: Disposable;
  /** Whether no more requests are accepted. */
  #isStopping = false;
  /** Whether no request begins any more, and no answer is sent. */
  #isClosed = false;
  #endReason: EndReason | undefined;
  /** Bytes that arrived after the end. */
  #discarded = 0;

  /** @param stream the bytes that the WebSocket library reads */
  constructor(socket: WebSocket, stream: Duplex, parts: ConnectionParts) {
    this.#socket = socket;
    this.#stream = stream;
    this.#parts = parts;
    this.#chunks = GatheredChunks.of(stream) ?? new GatheredChunks(stream);
    const { context, bytes, address } = parts;
    const owner: ByteOwner = { kind: 'address', id: address };
    const common = { context, bytes, owner, socket, stream };
    this.#incoming = new IncomingBytes({
      ...{ ...common, turns: parts.dispatcher.turns, read: this.#takeOver() },
      refused: () => this.#close(closeCodes.tryAgainLater, 'too many bytes received'),
      tooSlow: () => this.#close(closeCodes.policy, 'message unfinished'),
    });
    this.#outgoing = new OutgoingBytes({
      ...common,
      taken: () => this.#requests.startNext(),
      tooSlow: () => this.#end('peer reads too slowly'),
    });
    this.#requests = new IncomingRequests({
      ...{ context, dispatcher: parts.dispatcher },
      owner: () => this.#incoming.owner,
      holdRequest: () => this.#incoming.holdRequest(),
      waitingBytes: () => this.#outgoing.waitingBytes,
      answer: (request, text, hold) => this.#answer(request, text, hold),
      refuse: (text, answer, isPaid) => this.#refuse(text, answer, isPaid),
      wasRead: () => {
        if (this.#isStopping) this.#closeWhenIdle();
      },
    });
    this.#liveness = new Liveness({
      ...{ context, socket },
      sentBytes: () => this.#outgoing.sentBytes,
      dead: () => this.#end('peer does not answer pings'),
    });
    this.#unboundDeadline = new UnboundDeadline({
      ...{ context, bytes },
      owner: { kind: 'address', id: address },
      isBusy: () => this.#requests.outstanding > 0,
      expired: () => this.#close(closeCodes.policy, 'no session'),
    });
    connectionOpened(context);
    this.#unboundDeadline.start();
    this.#pings = this.#schedulePing();
    socket.on('message', (data, isBinary) => this.#receive(data, isBinary));
    socket.on('ping', (data) => this.#outgoing.pong(data));
    socket.on('pong', (data) => this.#liveness.pong(data));
    // After oversized messages and invalid frames the library closes by itself (1009, 1002).
    socket.on('error', () => {
      this.#endReason ??= 'connection error';
    });
    socket.on('close', () => this.#closed());
    // At once it is told what waits already, which may be too much.
    this.#chunks.readBy({ waiting: (count) => this.#incoming.hold(count) });
  }

  /** Takes what arrives away from the WebSocket library; returns what gives it bytes to read. */
  #takeOver(): (bytes: Uint8Array) => void {
    const socket = this.#socket;
    const stream = this.#stream;
    const listeners = stream.listeners('data');
    // After a broken frame, or when the peer closes, the library reads nothing more.
    const isRead = () => !this.#isClosed && (socket.readyState === socket.OPEN || this.#isStopping);
    stream.removeAllListeners('data');
    const chunks = this.#chunks;
    const { recordCharge } = this.#parts.context.limits;
    stream.on('data', (chunk: Buffer) => {
      chunks.take(chunk.length);
      const count = chunks.takeCount();
      if (isRead()) this.#incoming.receive(chunk, count);
      else this.#discard(Math.max(chunk.length, count * recordCharge));
    });
    // What a paused connection had received when it ended, the library would read in one piece.
    stream.prependOnceListener('close', () => {
      stream.removeAllListeners('data');
      const left = chunks.takeCount() * recordCharge;
      this.#parts.bytes.charge(this.#incoming.owner, Math.max(left, stream.readableLength));
      while (stream.read() !== null);
    });
    return (bytes) => {
      if (isRead()) for (const read of listeners) read.call(stream, bytes);
    };
  }

  /** Each connection has its own time: pings to all of them at once would hold the event loop. */
  #schedulePing(): Disposable {
    const { clock, limits } = this.#parts.context;
    return clock.after(limits.pingInterval, () => {
      this.#pings = this.#schedulePing();
      this.#checkAlive();
    });
  }

  /**
   * Pings the peer; ends the connection if it did not answer the previous ping. A connection whose
   * session ended is one without a session from now on.
   */
  #checkAlive(): void {
    if (this.#bound?.dead === true && !this.#unboundDeadline.isRunning) this.#unbind();
    // While paused, a pong cannot be read.
    if (this.#incoming.isPaused) this.#liveness.forgive();
    else this.#liveness.check();
  }

  /** Accepts no more requests, answers those in progress, then closes with 1001. */
  stop(): void {
    this.#isStopping = true;
    this.#pings[Symbol.dispose]();
    this.#incoming.readToEnd();
    this.#closeWhenIdle();
  }

  /** Closes the connection with 1013: another process of the relay can serve its client. */
  leave(): void {
    this.#close(closeCodes.tryAgainLater, 'storage out of reach');
  }

  /** Ends the connection at once. */
  terminate(reason: EndReason): void {
    this.#end(reason);
  }

  #receive(data: RawData, isBinary: boolean): void {
    if (this.#isStopping || this.#socket.readyState !== this.#socket.OPEN) return;
    if (isBinary) {
      this.#close(closeCodes.binary, 'binary message');
      return;
    }
    this.#requests.receive(data as Buffer);
  }

  async #answer(
    { id, method, params }: RpcRequest,
    received: ReceivedText,
    hold: ByteHold,
  ): Promise<void> {
    using _hold = hold;
    const { dispatcher, origin, address } = this.#parts;
    const hasTurn = received.hasTurn && this.#awaitingTurn === 0;
    let isBegun = hasTurn;
    if (!hasTurn) this.#awaitingTurn += 1;
    const begin = () => {
      if (!isBegun) this.#awaitingTurn -= 1;
      isBegun = true;
    };
    const credentials = new RequestBinding(this.#binding);
    const answer = await dispatcher.answer({
      ...{ ...received, hasTurn, method, origin, address, credentials },
      params: () => {
        begin();
        return params;
      },
    });
    begin();
    if (answer.ok) this.#unboundDeadline.renew();
    this.#requests.answered(id);
    this.#send(this.#encode(id, answer));
    if (!answer.ok) this.#slowDown();
    // The success response goes first, then notifications start (02 §12.5).
    if (credentials.hasBound) this.#bound?.enable();
    if (this.#isStopping) this.#closeWhenIdle();
  }

  /** Answers a request that is not decoded, or not admitted: it costs as much as a call. */
  #refuse(bytes: Uint8Array, answer: string, isPaid: boolean): void {
    if (!isPaid) this.#parts.dispatcher.chargeRefused(this.#incoming.owner, bytes.length);
    this.#send(answer);
    this.#slowDown();
  }

  /** Reads nothing for a while from a caller which owes all that it can owe. */
  #slowDown(): void {
    if (this.#parts.dispatcher.isOverdrawn(this.#incoming.owner))
      this.#incoming.pause(refusalPause / 1_000);
  }

  #makeBinding(): ConnectionBinding {
    const connection = this;
    return {
      get bound() {
        return connection.#bound;
      },
      bind: (session) => this.#bind(session),
      end: (session) => {
        if (this.#bound?.session.id === session.id) this.#bound.revoke();
      },
      setSubscriptions: async (request, confirm) => {
        await this.#bound?.setSubscriptions(request, confirm);
      },
    };
  }

  #bind(session: Session): void {
    // Otherwise a connection that closed meanwhile would stay in the hub for ever.
    if (this.#isClosed) return;
    if (this.#bound !== undefined) {
      this.#bound.renew(session);
      return;
    }
    const { context, hub } = this.#parts;
    this.#unboundDeadline.stop();
    this.#moveTo({ kind: 'account', id: session.account });
    this.#parts.sessionChanged(session.account);
    this.#bound = new BoundSession(session, {
      clock: context.clock,
      hub,
      send: (text, sent) => this.#send(text, sent),
      beforeWrite: (work) => this.#outgoing.beforeWrite(work),
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
    this.#outgoing.send(text, sent);
  }

  /** Treats the connection as one without a session: its session ended for good. */
  #unbind(): void {
    this.#unboundDeadline.start();
    this.#moveTo({ kind: 'address', id: this.#parts.address });
    this.#parts.sessionChanged(undefined);
  }

  #moveTo(owner: ByteOwner): void {
    this.#incoming.moveTo(owner);
    this.#outgoing.moveTo(owner);
  }

  #closeWhenIdle(): void {
    if (this.#requests.underWay > 0) return;
    this.#endReason ??= 'relay stops';
    this.#socket.close(closeCodes.goingAway, 'relay stops');
  }

  /** Closes at once: what the peer sends after that is dropped, and not kept as a message. */
  #close(code: number, reason: EndReason): void {
    this.#drop(reason);
    this.#socket.close(code, reason);
    // As the library does after a broken frame: it does not wait for the peer.
    this.#stream.resume();
    this.#stream.end();
  }

  /**
   * Drops what a peer sends after the end, so that it reads why; above the size of a message, nothing
   * more is received until the time for closing is over.
   */
  #discard(charge: number): void {
    const wait = this.#parts.bytes.charge(this.#incoming.owner, charge);
    this.#discarded += charge;
    if (wait > 0 || this.#discarded > bytesAfterClose) this.#stream.pause();
  }

  #end(reason: EndReason): void {
    this.#drop(reason);
    this.#socket.terminate();
  }

  /** Begins no request any more, also none that arrived or is being read. */
  #drop(reason: EndReason): void {
    this.#isStopping = true;
    this.#isClosed = true;
    this.#endReason ??= reason;
    this.#pings[Symbol.dispose]();
    this.#requests[Symbol.dispose]();
    this.#incoming[Symbol.dispose]();
  }

  #closed(): void {
    this.#drop('closed by peer');
    this.#outgoing[Symbol.dispose]();
    this.#unboundDeadline.stop();
    this.#bound?.release();
    connectionEnded(this.#parts.context, this.#endReason as EndReason);
    this.#parts.ended();
  }
}

/** The connection's binding as one request uses it. */
class RequestBinding implements ConnectionBinding {
  /** Whether the request has bound the connection. */
  hasBound = false;
  readonly #connection: ConnectionBinding;

  constructor(connection: ConnectionBinding) {
    this.#connection = connection;
  }

  get bound(): ConnectionBinding['bound'] {
    return this.#connection.bound;
  }

  bind(session: Session): void {
    this.hasBound = true;
    this.#connection.bind(session);
  }

  end(session: Session): void {
    this.#connection.end(session);
  }

  async setSubscriptions(
    ...[request, confirm]: Parameters<ConnectionBinding['setSubscriptions']>
  ): Promise<void> {
    await this.#connection.setSubscriptions(request, confirm);
  }
}
