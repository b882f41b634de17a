import { type ClientRequest, Agent as HttpAgent, request as httpRequest } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { limits } from '@posthouse/protocol';
import { WebSocket } from 'ws';
import { RelayMisbehaviour, RelayUnreachable } from '../errors.ts';
import { BodyBuffer } from './body-buffer.ts';
import {
  type HttpRequest,
  type HttpResponse,
  oversized,
  type Socket,
  type SocketEvents,
  type Transport,
} from './transport.ts';

/** Limits of a WebSocket. */
const socketLimits = {
  /** Frames of one message: each may keep the 64 KiB with which the system gave it. */
  maxFragments: 1_024,
  /** Milliseconds that a relay has to end a connection which is closing. */
  closeTimeout: 1_000,
};

/** Options of {@link NodeTransport}. */
export interface NodeTransportOptions {
  /** Certificate authorities in PEM, instead of the system's; for relays with a private authority. */
  readonly ca?: string;
}

/**
 * Transports HTTPS and WebSockets in Node; can trust a private certificate authority.
 *
 * @example
 * import { readFile } from 'node:fs/promises';
 * import { NodeTransport } from '@posthouse/client/node';
 * using transport = new NodeTransport({ ca: await readFile('tls/ca.pem', 'utf8') });
 */
export class NodeTransport implements Transport, Disposable {
  readonly #ca: { readonly ca?: string };
  readonly #agent: Agent;
  /** For nodes of the chain on this machine; relays have HTTPS addresses only. */
  readonly #plain = new HttpAgent({ keepAlive: true });

  constructor({ ca }: NodeTransportOptions = {}) {
    this.#ca = ca === undefined ? {} : { ca };
    this.#agent = new Agent({ ...this.#ca, keepAlive: true });
  }

  request(asked: HttpRequest): Promise<HttpResponse> {
    const { verb, url, headers, body, signal, maxBytes, progress } = asked;
    return new Promise((resolve, reject) => {
      let sent = false;
      const fail = (cause: unknown) => {
        if (signal.aborted) reject(signal.reason);
        else if (cause instanceof RelayMisbehaviour) reject(cause);
        else reject(unreachable(url, { outcomeUnknown: sent, cause }));
      };
      const isPlain = url.startsWith('http:');
      const request = (isPlain ? httpRequest : httpsRequest)(url, {
        method: verb,
        // Without this header a server may choose any coding (RFC 9110 §12.5.3). Node frames the
        // bodies of most verbs by itself, but not those of DELETE.
        headers: { 'accept-encoding': 'identity', ...headers, ...lengthOf(body) },
        agent: isPlain ? this.#plain : this.#agent,
        signal,
      });
      request.on('socket', (socket) => {
        // Before the TLS handshake ended nothing of the request can have reached the relay.
        if (!socket.connecting) sent = true;
        else if (isPlain) socket.once('connect', () => (sent = true));
        else (socket as TLSSocket).once('secureConnect', () => (sent = true));
      });
      request.on('error', fail);
      request.on('upgrade', (_response, socket) => {
        socket.destroy();
        fail(new Error('an upgrade that was not asked for'));
      });
      request.on('response', (response) => {
        const received = new BodyBuffer(maxBytes);
        response.on('data', (chunk: Buffer) => {
          if (!received.add(chunk)) response.destroy(oversized(asked));
        });
        response.on('error', fail);
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            contentType: response.headers['content-type'],
            coding: response.headers['content-encoding'],
            location: response.headers.location,
            body: received.whole(),
          }),
        );
      });
      if (body === undefined || progress === undefined) request.end(body);
      else endInParts(request, bytesOf(body), progress);
    });
  }

  connect(url: string, events: SocketEvents, signal: AbortSignal): Promise<Socket> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const socket = new WebSocket(url, {
        ...this.#ca,
        maxPayload: limits.webSocketMessageBytes,
        perMessageDeflate: false,
        followRedirects: false,
        ...socketLimits,
      });
      const abort = () => {
        reject(signal.reason);
        socket.terminate();
      };
      signal.addEventListener('abort', abort, { once: true });
      socket.on('open', () => {
        signal.removeEventListener('abort', abort);
        resolve({ send: (text) => socket.send(text), close: (code) => socket.close(code) });
      });
      socket.on('message', (data, isBinary) => {
        events.message(isBinary ? undefined : data.toString());
      });
      socket.on('error', (cause: NodeJS.ErrnoException) => {
        if (cause.code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH') events.oversized();
        reject(unreachable(url, { outcomeUnknown: false, cause }));
      });
      socket.on('close', (code) => {
        signal.removeEventListener('abort', abort);
        reject(unreachable(url, { outcomeUnknown: false }));
        events.closed(`closed with status ${code}`);
      });
    });
  }

  /** Closes idle connections. */
  [Symbol.dispose](): void {
    this.#agent.destroy();
    this.#plain.destroy();
  }
}

/** Bytes of a body that are written at a time. */
const partBytes = 65_536;

/** Returns the bytes of a body; those of an array are not copied. */
function bytesOf(body: string | Uint8Array<ArrayBuffer>): Buffer {
  if (typeof body === 'string') return Buffer.from(body);
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
}

/**
 * Writes a body and ends the request; calls `progress` each time that the system took a part. If
 * `progress` throws, the request fails with that error.
 */
function endInParts(
  request: ClientRequest,
  body: Buffer,
  progress: (sent: number) => void,
  from = 0,
): void {
  const until = Math.min(from + partBytes, body.length);
  const next = (error?: Error | null) => {
    if (error) return;
    try {
      progress(until);
    } catch (thrown) {
      request.destroy(thrown as Error);
      return;
    }
    if (until === body.length) request.end();
    else endInParts(request, body, progress, until);
  };
  request.write(body.subarray(from, until), next);
}

function lengthOf(body: HttpRequest['body']): Record<string, number> {
  return body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
}

function unreachable(url: string, options: { outcomeUnknown: boolean; cause?: unknown }) {
  const { origin } = new URL(url);
  const detail = options.cause instanceof Error ? `: ${describe(options.cause)}` : '';
  return new RelayUnreachable(`no answer from ${origin}${detail}`, options);
}

/** OpenSSL's codes for a certificate of an unknown authority. */
const unknownAuthority = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** Describes an error; errors of several addresses have their text in `code` only. */
function describe(error: NodeJS.ErrnoException): string {
  if (unknownAuthority.has(error.code ?? '')) return 'its certificate is of no trusted authority';
  return error.message || (error.code ?? 'connection failed');
}
