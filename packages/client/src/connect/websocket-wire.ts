import { checkSchema, type MethodName, notifications } from '@posthouse/protocol';
import { isJsonObject, type JsonObject, type JsonValue, parseJson } from '@posthouse/protocol/json';
import {
  type ClientError,
  checkRelayAnswer,
  RelayMisbehaviour,
  RelayUnreachable,
} from '../errors.ts';
import { rpcResult } from './check-response.ts';
import type { Socket, Transport } from './transport.ts';
import type { ExchangeOptions, Wire } from './wire.ts';

/** A notification of the catalogue whose parameters have the right shape. */
export interface Notification {
  readonly method: string;
  readonly params: JsonObject;
}

interface Pending {
  readonly method: MethodName;
  readonly resolve: (value: JsonValue) => void;
  readonly reject: (error: unknown) => void;
}

/** JSON-RPC over one open WebSocket (02 §3.3 to §3.8). It is closed if the relay breaks a rule. */
export class WebSocketWire implements Wire {
  readonly kind = 'websocket';
  readonly address: string;
  /** Settles with the reason once the connection has ended; never rejects. */
  readonly ended: Promise<ClientError>;
  readonly #settleEnded: (reason: ClientError) => void;
  readonly #pending = new Map<number, Pending>();
  /** Aborted requests; their late answers are ignored. */
  readonly #abandoned = new Set<number>();
  readonly #listener: (notification: Notification) => void;
  #socket: Socket | undefined;
  #reason: ClientError | undefined;
  #closeCode = 1000;
  #nextId = 1;

  private constructor(address: string, listener: (notification: Notification) => void) {
    this.address = address;
    this.#listener = listener;
    const { promise, resolve } = Promise.withResolvers<ClientError>();
    this.ended = promise;
    this.#settleEnded = resolve;
  }

  /** @throws RelayUnreachable; RelayMisbehaviour if the first messages break a rule already */
  static async open(
    address: string,
    transport: Transport,
    options: { readonly listener: (notification: Notification) => void; signal: AbortSignal },
  ): Promise<WebSocketWire> {
    if (transport.connect === undefined) throw new TypeError('transport has no WebSocket');
    const wire = new WebSocketWire(address, options.listener);
    const events = {
      message: (text: string | undefined) => wire.#receive(text),
      oversized: () => wire.#end(broken('oversized_response', 'message over 1 MiB'), 1009),
      closed: (reason: string) =>
        wire.#end(new RelayUnreachable(`connection ${reason}`, { outcomeUnknown: true })),
    };
    const socket = await transport.connect(address, events, options.signal);
    if (wire.#reason !== undefined) {
      // Messages can come in one segment with the handshake, before there was a socket to close.
      socket.close(wire.#closeCode);
      throw wire.#reason;
    }
    wire.#socket = socket;
    return wire;
  }

  get isOpen(): boolean {
    return this.#reason === undefined;
  }

  async exchange(
    method: MethodName,
    params: object,
    { signal }: ExchangeOptions,
  ): Promise<JsonValue> {
    signal.throwIfAborted();
    if (this.#reason !== undefined) throw this.#reason;
    const id = this.#nextId;
    this.#nextId += 1;
    const { promise, resolve, reject } = Promise.withResolvers<JsonValue>();
    this.#pending.set(id, { method, resolve, reject });
    const abandon = () => {
      if (this.#pending.delete(id)) this.#abandoned.add(id);
      reject(signal.reason);
    };
    signal.addEventListener('abort', abandon, { once: true });
    try {
      this.#socket?.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
      return await promise;
    } finally {
      signal.removeEventListener('abort', abandon);
    }
  }

  close(): void {
    this.#end(new RelayUnreachable('connection was closed', { outcomeUnknown: true }), 1000);
  }

  #end(reason: ClientError, code?: number): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    if (code !== undefined) {
      this.#closeCode = code;
      this.#socket?.close(code);
    }
    for (const { reject } of this.#pending.values()) reject(reason);
    this.#pending.clear();
    this.#settleEnded(reason);
  }

  #receive(text: string | undefined): void {
    if (this.#reason !== undefined) return;
    if (text === undefined) {
      this.#end(broken('binary_message', 'binary WebSocket message'), 1003);
      return;
    }
    try {
      this.#dispatch(text);
    } catch (error) {
      this.#end(error as RelayMisbehaviour, 1008);
    }
  }

  #dispatch(text: string): void {
    const value = checkRelayAnswer('malformed_response', 'websocket', () => parseJson(text));
    if (!isJsonObject(value) || value.jsonrpc !== '2.0') {
      throw broken('malformed_response', 'not a JSON-RPC 2.0 object');
    }
    // The root may have members of any name (02 §3.8): an ID and an outcome make it a response.
    const hasOutcome = Object.hasOwn(value, 'result') || Object.hasOwn(value, 'error');
    const isAnswer = Object.hasOwn(value, 'id') && hasOutcome;
    if (Object.hasOwn(value, 'method') && !isAnswer) this.#notified(value);
    else this.#answered(value);
  }

  #answered(response: JsonObject): void {
    const { id } = response;
    if (typeof id === 'number' && this.#abandoned.delete(id)) return;
    const pending = typeof id === 'number' ? this.#pending.get(id) : undefined;
    if (pending === undefined) {
      throw broken('unknown_response_id', 'response to a request that was not made');
    }
    this.#pending.delete(id as number);
    try {
      pending.resolve(rpcResult(pending.method, response));
    } catch (error) {
      pending.reject(error);
      if (error instanceof RelayMisbehaviour) throw error;
    }
  }

  #notified(message: JsonObject): void {
    if (Object.hasOwn(message, 'id') || typeof message.method !== 'string') {
      throw broken('malformed_notification', 'a relay sends no requests');
    }
    const definition = Object.hasOwn(notifications, message.method)
      ? notifications[message.method as keyof typeof notifications]
      : undefined;
    if (definition === undefined) return;
    const params = Object.hasOwn(message, 'params') ? message.params : {};
    checkRelayAnswer('malformed_notification', message.method, () => {
      checkSchema(definition.params, params);
    });
    this.#listener({ method: message.method, params: params as JsonObject });
  }
}

function broken(
  reason:
    | 'binary_message'
    | 'malformed_response'
    | 'malformed_notification'
    | 'oversized_response'
    | 'unknown_response_id',
  message: string,
): RelayMisbehaviour {
  return new RelayMisbehaviour(reason, message);
}
