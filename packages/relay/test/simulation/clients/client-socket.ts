/** A client's end of a WebSocket: calls, answers and notifications. */
import { errorCodeOfRpc, ProtocolError } from '@posthouse/protocol';
import { type JsonObject, type JsonValue, parseJson } from '@posthouse/protocol/json';
import { type ConnectionEnd, NoAnswer } from '../machine/network.ts';
import type { Scheduler } from '../machine/scheduler.ts';
import { pongTo } from '../relay/server-socket.ts';

/** Milliseconds after which a call counts as unanswered; the client closes the connection then. */
const callTimeout = 30_000;

interface RpcText {
  readonly id?: number;
  readonly method?: string;
  readonly params?: JsonObject;
  readonly result?: JsonValue;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: JsonObject };
}

interface Pending {
  readonly resolve: (value: JsonValue) => void;
  readonly reject: (error: Error) => void;
}

export class ClientSocket {
  /** Called with each notification. */
  notified: (method: string, params: JsonObject) => void = () => {};
  closed: () => void = () => {};
  readonly #end: ConnectionEnd;
  readonly #scheduler: Scheduler;
  readonly #pending = new Map<number, Pending>();
  #nextId = 0;

  constructor(end: ConnectionEnd, scheduler: Scheduler) {
    this.#end = end;
    this.#scheduler = scheduler;
    end.received = (text) => this.#received(text);
    end.closed = () => this.#ended();
  }

  get isOpen(): boolean {
    return this.#end.isOpen;
  }

  /** @throws ProtocolError what the relay refuses with; NoAnswer */
  async call(method: string, params: JsonValue): Promise<JsonValue> {
    if (!this.isOpen) throw new NoAnswer(true);
    this.#nextId += 1;
    const id = this.#nextId;
    const { promise, resolve, reject } = Promise.withResolvers<JsonValue>();
    this.#pending.set(id, { resolve, reject });
    this.#end.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    using _timeout = this.#scheduler.after(callTimeout, () => this.close());
    return await promise;
  }

  /** Closes the connection from this side. */
  close(): void {
    this.#end.close();
    this.#ended();
  }

  /** Ends the connection from outside. */
  cut(): void {
    this.#end.cut();
  }

  #received(text: string): void {
    const pong = pongTo(text);
    if (pong !== undefined) {
      this.#end.send(pong);
      return;
    }
    const { id, method, params = {}, result, error } = parseJson(text) as RpcText;
    if (method !== undefined) {
      this.notified(method, params);
      return;
    }
    const pending = this.#pending.get(id as number);
    this.#pending.delete(id as number);
    if (error === undefined) pending?.resolve(result ?? null);
    else pending?.reject(errorOf(error));
  }

  #ended(): void {
    for (const { reject } of this.#pending.values()) reject(new NoAnswer(false));
    this.#pending.clear();
    this.closed();
  }
}

function errorOf({ code, message, data }: NonNullable<RpcText['error']>): Error {
  const name = errorCodeOfRpc(code);
  if (name === undefined) return new Error(`${code}: ${message}`);
  return new ProtocolError(name, message, data === undefined ? {} : { data });
}
