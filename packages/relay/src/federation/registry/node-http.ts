/** Sends JSON-RPC requests to the nodes of the chain (07 §A6). */
import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import type { NodeAnswer, NodePost, NodeRequest } from '@posthouse/protocol';
import type { RelayContext } from '../../context.ts';
import { readBody, requireFinalAnswer, trusting } from '../https.ts';
import { timeLimit } from '../time-limit.ts';

export interface NodeHttpOptions extends Pick<RelayContext, 'clock' | 'limits'> {
  /** PEM of an authority to trust in addition to those of the system. */
  readonly authority: string | undefined;
}

/** What every node answers. */
const versionRequest = '{"jsonrpc":"2.0","id":1,"method":"getversion","params":[]}';

/** Connections to each node, which are kept open. */
const connections = { keepAlive: true, maxSockets: 8, maxFreeSockets: 2 };

/**
 * Sends requests over kept connections. The nodes' addresses are the operator's, so they may be
 * private; TLS is verified, redirects are not followed.
 */
export class NodeHttp implements Disposable {
  readonly #options: NodeHttpOptions;
  readonly #https: HttpsAgent;
  readonly #http = new HttpAgent(connections);

  /** @throws Error if the authority is no PEM certificate */
  constructor(options: NodeHttpOptions) {
    this.#options = options;
    const secureContext = trusting(options.authority);
    this.#https = new HttpsAgent({
      ...connections,
      ...(secureContext !== undefined && { secureContext }),
    });
  }

  /** Sends one request. @throws Error if there is no complete answer in time; the signal's reason */
  readonly post: NodePost = async (request) => {
    const { clock, limits } = this.#options;
    const signals = request.signal === undefined ? [] : [request.signal];
    using limit = timeLimit(clock, limits.federationNodeTimeout, ...signals);
    try {
      return await this.#sendTwice(request, limit.signal);
    } catch (cause) {
      if (!limit.isOver) throw cause;
      // Its code tells the operator more than that a request was aborted.
      throw Object.assign(new Error('no answer in time', { cause }), { code: 'ETIMEDOUT' });
    }
  };

  async #sendTwice(request: NodeRequest, signal: AbortSignal): Promise<NodeAnswer> {
    try {
      return await this.#send(request, signal);
    } catch (error) {
      // A node may close a kept connection at any time; every read can be repeated.
      if (!isStale(error)) throw error;
      return await this.#send(request, signal);
    }
  }

  /**
   * Reads the time of a node from the header `Date` of its answer, whatever the answer is.
   *
   * @returns Unix milliseconds, of a whole second; `undefined` without the header
   * @throws Error if the node cannot be reached in time; the signal's reason
   */
  async fetchDate(url: string, signal: AbortSignal): Promise<number | undefined> {
    const { clock, limits } = this.#options;
    using limit = timeLimit(clock, limits.federationNodeTimeout, signal);
    const { response } = await this.#request(url, versionRequest, limit.signal);
    response.destroy();
    const time = Date.parse(response.headers.date ?? '');
    return Number.isNaN(time) ? undefined : time;
  }

  [Symbol.dispose](): void {
    this.#https.destroy();
    this.#http.destroy();
  }

  async #send({ url, body, maxBytes }: NodeRequest, signal: AbortSignal): Promise<NodeAnswer> {
    const { response, reusedSocket } = await this.#request(url, body, signal);
    const { statusCode: status = 0 } = response;
    if (status !== 200) {
      // The status tells what is wrong: a key, a rate, a redirect. The rest is not read.
      response.destroy();
      return { status, body: new Uint8Array() };
    }
    const bytes = await readBody(response, maxBytes);
    return { status, body: bytes, isNewConnection: !reusedSocket };
  }

  async #request(url: string, body: string, signal: AbortSignal) {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const options = {
      method: 'POST',
      headers: {
        accept: 'application/json',
        'accept-encoding': 'identity',
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      },
      signal,
    };
    const sent = url.startsWith('http:')
      ? requestHttp(url, { ...options, agent: this.#http })
      : requestHttps(url, { ...options, agent: this.#https, rejectUnauthorized: true });
    requireFinalAnswer(sent, reject);
    sent
      .on('response', resolve)
      .on('error', (error) => reject(sent.reusedSocket ? new StaleConnection(error) : error))
      .end(body);
    const response = await promise;
    return { response, reusedSocket: sent.reusedSocket };
  }
}

/** A kept connection ended before it had an answer. */
class StaleConnection extends Error {
  constructor(cause: Error) {
    super('the kept connection ended', { cause });
  }
}

function isStale(error: unknown): boolean {
  const { cause } = error as { readonly cause?: { readonly code?: unknown } };
  return error instanceof StaleConnection && ['ECONNRESET', 'EPIPE'].includes(String(cause?.code));
}
