import type { IncomingHttpHeaders } from 'node:http';
import { Agent, request } from 'node:https';
import { encodeQuery, type MethodName, methodPath, methods } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface HttpMessage {
  readonly verb: string;
  /** Appended to the base address, query included; absolute if it begins with `//`. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Uint8Array;
}

/** A plain HTTPS client that sends what it is told, right or wrong. */
export class HttpClient implements Disposable {
  readonly base: string;
  readonly #agent: Agent;

  constructor(base: string, ca: string) {
    this.base = base;
    // Without a server name the certificate is checked against the address, not the Host header.
    this.#agent = new Agent({ ca, keepAlive: true, servername: '' });
  }

  async send({ verb, path, headers = {}, body }: HttpMessage): Promise<HttpAnswer> {
    const url = path.startsWith('//') ? new URL(path.slice(1), this.base) : this.base + path;
    const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>();
    const outgoing = request(url, { method: verb, agent: this.#agent, headers }, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('error', reject);
      incoming.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text });
      });
    });
    outgoing.on('error', reject);
    outgoing.end(body);
    return promise;
  }

  /** A method as the catalogue says, over its first verb or the one given. */
  async call(
    name: MethodName,
    params: unknown,
    options: { readonly token?: string; readonly verb?: string } = {},
  ): Promise<HttpAnswer> {
    const definition = methods[name];
    const verb = options.verb ?? (definition.http as readonly string[])[0] ?? 'GET';
    const session = options.token === undefined ? {} : { 'x-svc-session': options.token };
    if (verb === 'GET') {
      const query = encodeQuery(definition, params as JsonObject);
      const path = methodPath(name) + (query === '' ? '' : `?${query}`);
      return this.send({ verb, path, headers: session });
    }
    const body = JSON.stringify(params);
    // Node sends the body of a DELETE without saying how long it is.
    const length = String(Buffer.byteLength(body));
    const headers = { 'content-type': 'application/json', 'content-length': length, ...session };
    return this.send({ verb, path: methodPath(name), headers, body });
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}

/** The `code` of a failure, or `ok`. */
export function codeOf({ status, text }: HttpAnswer): string {
  if (status < 300) return 'ok';
  return (JSON.parse(text) as { code: string }).code;
}
