/** One way to the relay: calls with their outcomes as a client sees them, and what is pushed. */
import {
  HttpsCaller,
  PlainSocket,
  readRpcAnswer,
  type Target,
  Violation,
} from '@posthouse/conformance';
import { isJsonObject, type JsonObject, type JsonValue, parseJson } from '@posthouse/protocol/json';
import type { Outcome } from './log.ts';

export interface Reply {
  readonly outcome: Outcome;
  /** `null` unless the outcome is `ok`. */
  readonly result: JsonValue;
}

const lost: Reply = { outcome: 'lost', result: null };

/** A session's way to the relay. Calls never reject: a connection that ends is an outcome. */
export interface RelayConnection extends Disposable {
  call(method: string, params: JsonObject): Promise<Reply>;
  /** Takes the token of a session that was opened here. */
  use(token: string): void;
  /** Resolves when this way is of no use any more. */
  readonly closed: Promise<void>;
}

/** A WebSocket connection, which is cut when its process is gone. */
export class SocketConnection implements RelayConnection {
  readonly closed: Promise<void>;
  readonly #socket: PlainSocket;
  readonly #calls = new Map<number, { method: string; settle: (reply: Reply) => void }>();
  #next = 1;
  #isClosed = false;

  private constructor(socket: PlainSocket, hear: (notification: JsonObject) => void) {
    this.#socket = socket;
    socket.listen((text) => this.#receive(text, hear));
    this.closed = socket.closed.then(() => this.#end());
  }

  /**
   * @param url complete WebSocket address
   * @throws Error if no server answers
   */
  static async open(
    target: Pick<Target, 'ca'>,
    url: string,
    hear: (notification: JsonObject) => void,
  ): Promise<SocketConnection> {
    return new SocketConnection(await PlainSocket.open(url, target.ca), hear);
  }

  call(method: string, params: JsonObject): Promise<Reply> {
    if (this.#isClosed) return Promise.resolve(lost);
    const id = this.#next;
    this.#next += 1;
    const { promise, resolve: settle } = Promise.withResolvers<Reply>();
    this.#calls.set(id, { method, settle });
    this.#socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    return promise;
  }

  use(): void {}

  #receive(text: string, hear: (notification: JsonObject) => void): void {
    const message = parseJson(text);
    if (!isJsonObject(message)) return;
    if (message.id === undefined) {
      hear(message);
      return;
    }
    const id = Number(message.id);
    const call = this.#calls.get(id);
    if (call === undefined) throw new Error(`an answer to no call: ${text}`);
    this.#calls.delete(id);
    const answer = readRpcAnswer(text, call.method);
    if (answer.ok) call.settle({ outcome: 'ok', result: answer.result });
    else call.settle({ outcome: answer.code, result: null });
  }

  #end(): void {
    this.#isClosed = true;
    for (const { settle } of this.#calls.values()) settle(lost);
    this.#calls.clear();
  }

  [Symbol.dispose](): void {
    this.#socket[Symbol.dispose]();
  }
}

/** HTTPS with a token, which outlives its connections and the process that gave it. */
export class HttpsConnection implements RelayConnection {
  readonly closed: Promise<void>;
  readonly #caller: HttpsCaller;
  readonly #close: () => void;

  constructor(target: Target) {
    this.#caller = new HttpsCaller(target);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    this.#close = resolve;
  }

  async call(method: string, params: JsonObject): Promise<Reply> {
    try {
      const answer = await this.#caller.call(method, params);
      if (!answer.ok) return { outcome: answer.code, result: null };
      return { outcome: 'ok', result: answer.result };
    } catch (error) {
      // An answer that must not be is the relay's fault, not the connection's.
      if (error instanceof Violation) throw error;
      return lost;
    }
  }

  use(token: string): void {
    this.#caller.useSession(token);
  }

  [Symbol.dispose](): void {
    this.#caller[Symbol.dispose]();
    this.#close();
  }
}
