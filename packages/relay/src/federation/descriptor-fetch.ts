/** Fetches descriptors of other relays over HTTPS (07 §A9): the only outgoing HTTP of a relay. */
import { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { isIP } from 'node:net';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import type { RelayContext } from '../context.ts';
import { type AddressFilter, AddressRefused } from './address-filter.ts';

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
    const { authority } = options;
    if (authority !== undefined) checkCertificate(authority);
    // Naming one authority would replace those of the system.
    this.#secureContext =
      authority === undefined
        ? undefined
        : createSecureContext({ ca: [...getCACertificates('default'), authority] });
  }

  /**
   * Fetches `{endpoint}/relay/descriptor`.
   *
   * @param endpoint the checked address of a registry record
   * @throws AddressRefused, or an Error that names the cause: TLS, a redirect, a status other than
   *   200, more bytes than the limit, the time limit, text that is no UTF-8
   */
  async fetch(endpoint: string, signal: AbortSignal): Promise<string> {
    const { clock, limits } = this.#options;
    const deadline = new AbortController();
    using _timer = clock.after(limits.federationDescriptorTimeout, () =>
      deadline.abort(new Error('no complete answer in time')),
    );
    const ended = AbortSignal.any([signal, deadline.signal]);
    try {
      const response = await this.#request(new URL(`${endpoint}/relay/descriptor`), ended);
      return await this.#read(response);
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
    const most = this.#options.limits.federationDescriptorBytes;
    try {
      const { statusCode, headers } = response;
      if (statusCode !== 200) throw new Error(`answered with status ${statusCode}`);
      const coding = headers['content-encoding'] ?? 'identity';
      if (coding !== 'identity') throw new Error('answered with a content coding');
      const chunks: Buffer[] = [];
      let bytes = 0;
      for await (const chunk of response as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > most) throw new Error(`answered with over ${most} bytes`);
        chunks.push(chunk);
      }
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(
        Buffer.concat(chunks),
      );
    } finally {
      response.destroy();
    }
  }
}

/** A secure context ignores what is no certificate. */
function checkCertificate(authority: string): void {
  try {
    void new X509Certificate(authority);
  } catch (cause) {
    throw new Error('the file has no certificate in PEM', { cause });
  }
}
