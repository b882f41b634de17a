/** A minimal HTTPS client that sends any message, valid or not. */
import { Agent, request } from 'node:https';

export interface HttpMessage {
  readonly verb: string;
  /** Path and query below the origin, sent as it is. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** Sends messages to one HTTPS origin, over at most 8 connections that stay open. */
export class PlainHttp implements Disposable {
  readonly #origin: URL;
  readonly #agent: Agent;

  constructor(origin: string, ca: string | undefined) {
    this.#origin = new URL(origin);
    this.#agent = new Agent({
      keepAlive: true,
      maxSockets: 8,
      ...(ca === undefined ? {} : { ca }),
    });
  }

  send(message: HttpMessage, timeout = 30_000): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      const outgoing = request(
        {
          agent: this.#agent,
          host: this.#origin.hostname.replace(/^\[|\]$/g, ''),
          port: this.#origin.port || 443,
          method: message.verb,
          path: message.path,
          headers: {
            ...message.headers,
            ...(message.body === undefined
              ? {}
              : { 'content-length': Buffer.byteLength(message.body) }),
          },
          timeout,
        },
        (incoming) => {
          const chunks: Buffer[] = [];
          incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
          incoming.on('error', reject);
          incoming.on('end', () =>
            resolve({
              status: incoming.statusCode ?? 0,
              headers: incoming.headers,
              body: Buffer.concat(chunks).toString('utf8'),
            }),
          );
        },
      );
      outgoing.on('timeout', () => outgoing.destroy(new Error('no answer in time')));
      outgoing.on('error', reject);
      outgoing.end(message.body);
    });
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}
