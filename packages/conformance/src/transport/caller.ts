/**
 * One caller on one transport. `call` performs a method and checks what every answer must satisfy,
 * whatever the method: the envelope, the code and status that belong together, strict JSON, the
 * response object of the catalogue (chapter 02, sections 3 and 4).
 */
import { setTimeout } from 'node:timers/promises';
import {
  checkSchema,
  type ErrorCode,
  encodeQuery,
  errorCatalogue,
  errorCodeOfRpc,
  type HttpVerb,
  isErrorCode,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  type MethodDefinition,
  methodPath,
  methods,
  parseJson,
} from '@posthouse/protocol';
import { demand } from '../assert.ts';
import type { Target } from '../target.ts';
import { type HttpAnswer, type HttpMessage, PlainHttp } from './plain-http.ts';
import { PlainSocket } from './plain-socket.ts';

/** Outcome of a call, the same on both transports. */
export type Answer =
  | { readonly ok: true; readonly result: JsonValue }
  | {
      readonly ok: false;
      readonly code: ErrorCode;
      readonly message: string;
      readonly data: JsonValue | undefined;
    };

export type TransportName = 'https' | 'wss';

export interface Caller extends Disposable {
  readonly transport: TransportName;
  call(method: string, params?: JsonObject, verb?: HttpVerb): Promise<Answer>;
  /** Uses a session from now on: a header over HTTPS; over WSS the connection is already bound. */
  use(token: string): void;
}

function definitionOf(method: string): MethodDefinition | undefined {
  return Object.values(methods as Readonly<Record<string, MethodDefinition>>).find(
    ({ name }) => name === method,
  );
}

function checkResult(method: string, result: JsonValue): void {
  const definition = definitionOf(method);
  if (definition === undefined) return;
  if (definition.result === null) demand(result === null, `${method} defines no response object`);
  else checkSchema(definition.result, result, `${method} result`);
}

/** The caller over HTTPS. */
export class HttpsCaller implements Caller {
  readonly transport = 'https';
  readonly http: PlainHttp;
  readonly #target: Target;
  readonly #shared: boolean;
  #token: string | undefined;

  /** @param http connections of another caller, which then are its to close */
  constructor(target: Target, http?: PlainHttp) {
    this.#target = target;
    this.#shared = http !== undefined;
    this.http = http ?? new PlainHttp(target.baseUrl, target.ca);
  }

  use(token: string): void {
    this.#token = token;
  }

  /** Path of a method below the base address. */
  path(method: string): string {
    return new URL(this.#target.baseUrl).pathname.replace(/\/$/, '') + methodPath(method);
  }

  async call(method: string, params: JsonObject = {}, verb?: HttpVerb): Promise<Answer> {
    const answer = await patiently(() => this.#call(method, params, verb));
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

  /** Sends a message as it is and reads the answer as one of the method named. */
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

/** How often a call that met a rate limit is made again. */
const patience = 20;

/** Waits out rate limits as the relay asks (02 §5): the checks come faster than people do. */
async function patiently(call: () => Promise<Answer>): Promise<Answer> {
  for (let tries = 1; ; tries += 1) {
    const answer = await call();
    if (answer.ok || answer.code !== 'rate_limited' || tries === patience) return answer;
    const asked = isJsonObject(answer.data) ? Number(answer.data.retry_after ?? 1) : 1;
    await setTimeout(Math.max(asked, 0.2) * 1_000);
  }
}

/** The method's first verb; GET only where a query can express the parameters (02 §2.4). */
function verbFor(definition: MethodDefinition | undefined, params: JsonObject): HttpVerb {
  const verbs = definition?.http ?? ['POST'];
  const refused = definition?.queryRefuses ?? [];
  const inQuery = !Object.keys(params).some((name) => refused.includes(name));
  return verbs.find((verb) => verb !== 'GET' || inQuery) ?? 'GET';
}

/** Checks an HTTP answer's form (02 §3.1, §3.2, §5) and reduces it to its outcome. */
function readHttpAnswer(answer: HttpAnswer, method: string): Answer {
  if (answer.status === 204) {
    demand(answer.body === '', 'a 204 answer has no body');
    checkResult(method, null);
    return { ok: true, result: null };
  }
  demand(
    /^application\/json(;\s*charset="?utf-8"?)?$/i.test(String(answer.headers['content-type'])),
    `${method} answers JSON, not ${answer.headers['content-type']}`,
  );
  const body = parseJson(answer.body);
  if (answer.status === 200) {
    checkResult(method, body);
    return { ok: true, result: body };
  }
  demand(isJsonObject(body), 'an HTTP failure carries a RelayError object');
  const { code, message, data } = body;
  demand(
    typeof code === 'string' && isErrorCode(code),
    `an error code of the catalogue, not ${code}`,
  );
  demand(typeof message === 'string', 'RelayError.message is a text');
  demand(
    answer.status === errorCatalogue[code].http,
    `${code} goes with HTTP ${errorCatalogue[code].http}, not ${answer.status}`,
  );
  demand(data === undefined || isJsonObject(data), 'RelayError.data is an object');
  if (code === 'rate_limited' && isJsonObject(data) && data.retry_after !== undefined) {
    demand(
      answer.headers['retry-after'] === String(data.retry_after),
      'Retry-After repeats data.retry_after',
    );
  }
  return { ok: false, code, message, data };
}

/** The caller over WSS: one connection. */
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

  use(): void {}

  async call(method: string, params?: JsonObject): Promise<Answer> {
    const answer = await patiently(() => this.#call(method, params));
    return this.#target.alter?.(method, answer) ?? answer;
  }

  async #call(method: string, params?: JsonObject): Promise<Answer> {
    const id = this.#next;
    this.#next += 1;
    this.socket.send(
      JSON.stringify({ jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) }),
    );
    const text = await this.socket.take((candidate) => {
      const value = parseJson(candidate);
      return isJsonObject(value) && value.id === id && value.method === undefined;
    });
    return readRpcAnswer(text, method);
  }

  /** The next notification of a name. */
  async notification(method: string, timeout?: number): Promise<JsonObject> {
    const text = await this.socket.take((candidate) => {
      const value = parseJson(candidate);
      return isJsonObject(value) && value.method === method;
    }, timeout);
    const message = parseJson(text) as JsonObject;
    demand(message.jsonrpc === '2.0' && message.id === undefined, 'a notification has no id');
    return (message.params ?? {}) as JsonObject;
  }

  [Symbol.dispose](): void {
    this.socket[Symbol.dispose]();
  }
}

/** Checks a JSON-RPC response's form (02 §3.5, §3.6) and reduces it to its outcome. */
export function readRpcAnswer(text: string, method: string): Answer {
  const message = parseJson(text);
  demand(isJsonObject(message) && message.jsonrpc === '2.0', 'a response says jsonrpc 2.0');
  if (message.error === undefined) {
    demand(message.result !== undefined, 'a response has result or error');
    checkResult(method, message.result);
    return { ok: true, result: message.result };
  }
  demand(message.result === undefined, 'an error response has no result');
  const { error } = message;
  demand(isJsonObject(error) && typeof error.code === 'number', 'error.code is an integer');
  demand(typeof error.message === 'string', 'error.message is a text');
  const code = errorCodeOfRpc(error.code);
  demand(code !== undefined, `a JSON-RPC code of the catalogue, not ${error.code}`);
  return { ok: false, code, message: error.message, data: error.data };
}
