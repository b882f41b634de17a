/** Callers over HTTPS and WSS. Each call is one request; `answer.ts` checks what comes back. */
import { setTimeout } from 'node:timers/promises';
import { encodeQuery, type HttpVerb, type MethodDefinition, methodPath } from '@posthouse/protocol';
import { isJsonObject, type JsonObject, parseJson } from '@posthouse/protocol/json';
import { assertConforms } from '../assert.ts';
import type { Target } from '../target.ts';
import { type Answer, definitionOf, readHttpAnswer, readRpcAnswer } from './answer.ts';
import { type HttpMessage, PlainHttp } from './plain-http.ts';
import { PlainSocket } from './plain-socket.ts';

export type TransportName = 'https' | 'wss';

/** Calls methods over one transport, with at most one session. */
export interface Caller extends Disposable {
  readonly transport: TransportName;
  /** Calls a method once more after each rate limit, as the relay asks. */
  call(method: string, params?: JsonObject, verb?: HttpVerb): Promise<Answer>;
  /** Sends a session token with later calls (HTTPS); a WSS connection is bound already. */
  useSession(token: string): void;
}

/** Calls over HTTPS. */
export class HttpsCaller implements Caller {
  readonly transport = 'https';
  readonly http: PlainHttp;
  readonly #target: Target;
  readonly #shared: boolean;
  #token: string | undefined;

  /** @param http connections of another caller, which closes them */
  constructor(target: Target, http?: PlainHttp) {
    this.#target = target;
    this.#shared = http !== undefined;
    this.http = http ?? new PlainHttp(target.baseUrl, target.ca);
  }

  useSession(token: string): void {
    this.#token = token;
  }

  /** Returns the complete path of a method. */
  path(method: string): string {
    return new URL(this.#target.baseUrl).pathname.replace(/\/$/, '') + methodPath(method);
  }

  async call(method: string, params: JsonObject = {}, verb?: HttpVerb): Promise<Answer> {
    const answer = await retryRateLimited(() => this.#call(method, params, verb));
    return this.#target.alter?.(method, answer) ?? answer;
  }

  async #call(method: string, params: JsonObject, verb?: HttpVerb): Promise<Answer> {
    const definition = definitionOf(method);
    const by = verb ?? verbFor(definition, params);
    const query = by === 'GET' && definition !== undefined ? encodeQuery(definition, params) : '';
    const hasBody = by !== 'GET';
    return this.#exchange(method, {
      verb: by,
      path: this.path(method) + (query === '' ? '' : `?${query}`),
      headers: {
        ...(this.#token === undefined ? {} : { [this.#target.network.sessionHeader]: this.#token }),
        ...(hasBody ? { 'content-type': 'application/json' } : {}),
      },
      ...(hasBody ? { body: JSON.stringify(params) } : {}),
    });
  }

  /** Sends a raw HTTP message and checks the answer as one of the method. */
  async raw(method: string, message: HttpMessage): Promise<Answer> {
    const answer = await this.#exchange(method, message);
    return this.#target.alter?.(method, answer) ?? answer;
  }

  async #exchange(method: string, message: HttpMessage): Promise<Answer> {
    return readHttpAnswer(await this.http.send(message), method);
  }

  [Symbol.dispose](): void {
    if (!this.#shared) this.http[Symbol.dispose]();
  }
}

/** Calls made at most while the relay answers `rate_limited`. */
const maxAttempts = 20;

/** Waits and calls again while the relay answers `rate_limited` (02 §5). */
async function retryRateLimited(call: () => Promise<Answer>): Promise<Answer> {
  for (let tries = 1; ; tries += 1) {
    const answer = await call();
    if (answer.ok || answer.code !== 'rate_limited' || tries === maxAttempts) return answer;
    const asked = isJsonObject(answer.data) ? Number(answer.data.retry_after ?? 1) : 1;
    await setTimeout(Math.max(asked, 0.2) * 1_000);
  }
}

/** Chooses the method's first verb; GET only if a query can express the parameters (02 §2.4). */
function verbFor(definition: MethodDefinition | undefined, params: JsonObject): HttpVerb {
  const verbs = definition?.http ?? ['POST'];
  const refused = definition?.queryRefuses ?? [];
  const inQuery = !Object.keys(params).some((name) => refused.includes(name));
  return verbs.find((verb) => verb !== 'GET' || inQuery) ?? 'GET';
}

/** Calls over one WSS connection. */
export class WssCaller implements Caller {
  readonly transport = 'wss';
  readonly socket: PlainSocket;
  readonly #target: Target;
  #next = 1;

  private constructor(target: Target, socket: PlainSocket) {
    this.#target = target;
    this.socket = socket;
  }

  static async open(target: Target, url: string): Promise<WssCaller> {
    return new WssCaller(target, await PlainSocket.open(url, target.ca));
  }

  useSession(): void {}

  async call(method: string, params?: JsonObject): Promise<Answer> {
    const answer = await retryRateLimited(() => this.#call(method, params));
    return this.#target.alter?.(method, answer) ?? answer;
  }

  async #call(method: string, params?: JsonObject): Promise<Answer> {
    const id = this.#next;
    this.#next += 1;
    this.socket.send(
      JSON.stringify({ jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) }),
    );
    const text = await this.socket.receive((candidate) => {
      const value = parseJson(candidate);
      return isJsonObject(value) && value.id === id && value.method === undefined;
    });
    return readRpcAnswer(text, method);
  }

  /** Waits for the next notification with a name; milliseconds. */
  async notification(method: string, timeout?: number): Promise<JsonObject> {
    const text = await this.socket.receive((candidate) => {
      const value = parseJson(candidate);
      return isJsonObject(value) && value.method === method;
    }, timeout);
    const message = parseJson(text) as JsonObject;
    assertConforms(
      message.jsonrpc === '2.0' && message.id === undefined,
      'a notification has no id',
    );
    return (message.params ?? {}) as JsonObject;
  }

  [Symbol.dispose](): void {
    this.socket[Symbol.dispose]();
  }
}
