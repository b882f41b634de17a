/** Reads what an address serves: bounded, without following redirects, in the encoding that was asked for. */
import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { setTimeout } from 'node:timers/promises';
import { trusting } from '../../federation/index.ts';
import { decoded, type Encoding } from '../../web/index.ts';

/** Requests under way at once. */
const requestsAtOnce = 4;
/** Times that a request is repeated after a refusal for its rate. */
const maxRepeats = 20;
/** Seconds before such a repeat, if the server names less. */
const shortestWait = 0.1;
/** Bytes that an encoding may add to a small file. */
const maxAdded = 1_024;

const connections = { keepAlive: true, maxSockets: requestsAtOnce };

/** An answer that is other than a relay's, in words that follow the file's name. */
export class Different extends Error {}

/** No complete answer, which says nothing about the files; the message says why. */
export class Unread extends Error {}

/** A complete answer with status 200. */
export interface ServedAnswer {
  readonly headers: NodeJS.Dict<string[]>;
  /** Decoded; nothing for what could not be decoded, or is longer than asked for. */
  readonly body: Uint8Array;
}

interface FetchOptions {
  /** Of the file after decoding. */
  readonly maxBytes: number;
  readonly encoding?: Encoding;
}

/** Sends the requests of one comparison. */
export class ServedFiles implements Disposable {
  readonly #base: URL;
  readonly #signal: AbortSignal;
  readonly #agent: HttpAgent | HttpsAgent;

  /**
   * @param base address of the folder, with a slash at its end
   * @param options.authority PEM, trusted in addition to those of the system
   * @param options.signal ends all requests
   * @throws Error if the authority is no PEM certificate
   */
  constructor(
    base: URL,
    {
      authority,
      signal,
    }: { readonly authority?: string | undefined; readonly signal: AbortSignal },
  ) {
    this.#base = base;
    this.#signal = signal;
    const secureContext = trusting(authority);
    this.#agent =
      base.protocol === 'http:'
        ? new HttpAgent(connections)
        : new HttpsAgent({ ...connections, ...(secureContext !== undefined && { secureContext }) });
  }

  /**
   * Reads a file by its name in the folder; the name `./` is the page.
   *
   * @throws Different or Unread
   */
  async fetch(
    name: string,
    { maxBytes, encoding = 'identity' }: FetchOptions,
  ): Promise<ServedAnswer> {
    const response = await this.#allowed(name, encoding);
    try {
      requireFile(response);
      const used = usedEncoding(response, encoding);
      const most = used === 'identity' ? maxBytes : maxBytes + maxAdded;
      const body = await this.#read(response, most);
      if (body === undefined) throw new Different(`is longer than ${maxBytes} bytes`);
      return { headers: response.headersDistinct, body: decoded(used, body, maxBytes) };
    } finally {
      response.destroy();
    }
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }

  /** Asks again after the time that a relay names, if the allowance of this address is used up. */
  async #allowed(name: string, encoding: Encoding): Promise<IncomingMessage> {
    for (let repeats = 0; ; repeats += 1) {
      const response = await this.#ask(name, encoding);
      const wait = Number(response.headers['retry-after'] ?? Number.NaN);
      if (response.statusCode !== 429 || !(wait >= 0) || repeats === maxRepeats) return response;
      response.destroy();
      try {
        await setTimeout(Math.max(shortestWait, wait) * 1_000, undefined, { signal: this.#signal });
      } catch {
        throw new Unread('there was no answer in time: too many requests');
      }
    }
  }

  async #ask(name: string, encoding: Encoding): Promise<IncomingMessage> {
    const sent = () => {
      const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
      const url = new URL(name, this.#base);
      const request = (url.protocol === 'http:' ? requestHttp : requestHttps)(url, {
        agent: this.#agent,
        headers: { accept: '*/*', 'accept-encoding': encoding },
        signal: this.#signal,
      });
      request.on('response', resolve).on('error', reject).end();
      return { request, promise };
    };
    const first = sent();
    try {
      return await first.promise;
    } catch (cause) {
      // A server may close a kept connection at any time.
      if (!first.request.reusedSocket || this.#signal.aborted) throw this.#unread(cause);
    }
    try {
      return await sent().promise;
    } catch (cause) {
      throw this.#unread(cause);
    }
  }

  /** Returns nothing if there are more bytes than `most`. */
  async #read(response: IncomingMessage, most: number): Promise<Buffer | undefined> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    try {
      for await (const chunk of response as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > most) return undefined;
        chunks.push(chunk);
      }
    } catch (cause) {
      throw this.#unread(cause);
    }
    return Buffer.concat(chunks);
  }

  #unread(cause: unknown): Unread {
    const why = this.#signal.aborted ? 'there was no answer in time' : (cause as Error).message;
    return new Unread(why || String((cause as { code?: unknown }).code), { cause });
  }
}

function requireFile({ statusCode: status = 0, headers }: IncomingMessage): void {
  if (status === 200) return;
  if (status === 429 || status >= 500) throw new Unread(`it is answered with status ${status}`);
  if (headers.location !== undefined) {
    throw new Different(`is answered with a redirect to ${headers.location}`);
  }
  // A relay answers 400 for a name that it does not serve.
  if (status === 400 || status === 404 || status === 410) throw new Different('is missing');
  throw new Different(`is answered with status ${status}`);
}

function usedEncoding({ headers }: IncomingMessage, asked: Encoding): Encoding {
  const used = headers['content-encoding']?.trim().toLowerCase() || 'identity';
  if (used === asked || used === 'identity') return used;
  throw new Different(`has the encoding ${used}, which was not asked for`);
}

/** Runs works, so many at once as there may be requests. */
export async function runEach(works: readonly (() => Promise<void>)[]): Promise<void> {
  const left = works.values();
  const run = async () => {
    for (const work of left) await work();
  };
  await Promise.all(Array.from({ length: requestsAtOnce }, run));
}
