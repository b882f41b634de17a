/** Fetches descriptors of other relays over HTTPS (07 §A9): the only outgoing HTTP of a relay. */
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { isIP } from 'node:net';
import type { SecureContext } from 'node:tls';
import type { RelayContext } from '../context.ts';
import { type AddressFilter, AddressRefused } from './address-filter.ts';
import { readBody, requireFinalAnswer, trusting } from './https.ts';

export interface FetcherOptions extends Pick<RelayContext, 'clock' | 'limits'> {
  readonly filter: AddressFilter;
  /** PEM of an authority to trust in addition to those of the system. */
  readonly authority: string | undefined;
}

/** Fetches the text of descriptors; verifies TLS and nothing of the content. */
export class DescriptorFetcher {
  readonly #options: FetcherOptions;
  /** `undefined` for the authorities of the system. */
  readonly #secureContext: SecureContext | undefined;

  /** @throws Error if the authority is no PEM certificate */
  constructor(options: FetcherOptions) {
    this.#options = options;
    this.#secureContext = trusting(options.authority);
  }

  /**
   * Fetches `{endpoint}/relay/descriptor`.
   *
   * @param endpoint the checked address of a registry record
   * @throws AddressRefused, or an Error that names the cause: TLS, a redirect, a status other than
   *   200, more bytes than the limit, the time limit, text that is no UTF-8
   */
  async fetch(endpoint: string, signal: AbortSignal): Promise<string> {
    return await this.#ask(endpoint, signal, (response) => this.#read(response));
  }

  /**
   * Reads the time that the server at an endpoint has, from the header `Date` of its answer, whatever
   * the answer is.
   *
   * @returns Unix milliseconds, of a whole second; `undefined` without the header
   * @throws as {@link fetch}
   */
  async fetchDate(endpoint: string, signal: AbortSignal): Promise<number | undefined> {
    return await this.#ask(endpoint, signal, async (response) => {
      response.destroy();
      const time = Date.parse(response.headers.date ?? '');
      return Number.isNaN(time) ? undefined : time;
    });
  }

  async #ask<T>(
    endpoint: string,
    signal: AbortSignal,
    read: (response: IncomingMessage) => Promise<T>,
  ): Promise<T> {
    const { clock, limits } = this.#options;
    const deadline = new AbortController();
    using _timer = clock.after(limits.federationDescriptorTimeout, () =>
      deadline.abort(new Error('no complete answer in time')),
    );
    const ended = AbortSignal.any([signal, deadline.signal]);
    try {
      const response = await this.#request(new URL(`${endpoint}/relay/descriptor`), ended);
      return await read(response);
    } catch (error) {
      throw ended.aborted ? ended.reason : error;
    }
  }

  #request(url: URL, signal: AbortSignal): Promise<IncomingMessage> {
    const { filter, limits } = this.#options;
    const host = url.hostname.replace(/^\[|\]$/g, '');
    // Sockets look up names only, so an address is checked here.
    if (isIP(host) !== 0 && !filter.isAllowed(host)) {
      throw new AddressRefused(`${host}: this relay does not connect to it`);
    }
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const sent = request(url, {
      agent: false,
      lookup: filter.lookup,
      rejectUnauthorized: true,
      ...(this.#secureContext !== undefined && { secureContext: this.#secureContext }),
      headers: { accept: 'application/json', 'accept-encoding': 'identity' },
      maxHeaderSize: limits.federationDescriptorBytes,
      signal,
    });
    requireFinalAnswer(sent, reject);
    sent.on('socket', (socket) =>
      socket.once('connect', () => {
        const address = socket.remoteAddress ?? '';
        if (!filter.isAllowed(address)) sent.destroy(new AddressRefused(`${address}: connected`));
      }),
    );
    sent.on('response', resolve).on('error', reject).end();
    return promise;
  }

  async #read(response: IncomingMessage): Promise<string> {
    const body = await readBody(response, this.#options.limits.federationDescriptorBytes);
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
  }
}
