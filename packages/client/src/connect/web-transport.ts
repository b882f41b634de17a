import { limits } from '@posthouse/protocol';
import { ClientError, RelayUnreachable } from '../errors.ts';
import { BodyBuffer } from './body-buffer.ts';
import {
  type HttpRequest,
  type HttpResponse,
  oversized,
  type Socket,
  type SocketEvents,
  type Transport,
} from './transport.ts';

/**
 * Transports with the platform's `fetch` and `WebSocket`: in browsers, and in Node if the relays'
 * certificates are of public authorities.
 *
 * @example
 * import { Client, MemoryStore, webTransport } from '@posthouse/client';
 * import { staticRegistry } from '@posthouse/protocol';
 * const registry = staticRegistry(network, { context: network.context, relays: [] });
 * const store = new MemoryStore();
 * await using opened = await Client.open({ network, registry, transport: webTransport, store });
 */
export const webTransport: Transport = {
  request: fetchOnce,
  // Asked by name: Node loads its client for `fetch` as soon as the value is read.
  ...('WebSocket' in globalThis && { connect: openSocket }),
};

async function fetchOnce(request: HttpRequest): Promise<HttpResponse> {
  const response = await send(request);
  if (response.type === 'opaqueredirect') {
    // Browsers hide the target, and follow one without HTTPS on the same machine (04 §9.1).
    throw new ClientError(
      'verification_failed',
      'a redirect, which a page cannot check: ask the sender for the final address',
    );
  }
  return {
    status: response.status,
    contentType: response.headers.get('content-type') ?? undefined,
    location: response.headers.get('location') ?? undefined,
    body: await readBody(response, request),
  };
}

function send(asked: HttpRequest): Promise<Response> {
  // What the platform refuses to send at all is a fault of this program, and thrown as it is.
  const request = new Request(asked.url, {
    method: asked.verb,
    headers: { ...asked.headers },
    ...(asked.body === undefined ? {} : { body: asked.body }),
    signal: asked.signal,
    redirect: asked.redirects === 'report' ? 'manual' : 'error',
    credentials: 'omit',
    cache: 'no-store',
    referrerPolicy: 'no-referrer',
  });
  return orUnreachable(fetch(request), asked);
}

/** What the platform's network fails with, as a {@link RelayUnreachable}. */
async function orUnreachable<T>(exchange: Promise<T>, request: HttpRequest): Promise<T> {
  try {
    return await exchange;
  } catch (cause) {
    request.signal.throwIfAborted();
    throw new RelayUnreachable(
      `no answer from ${new URL(request.url).origin}${pageHint(request)}`,
      { outcomeUnknown: true, cause },
    );
  }
}

/** The origin of the page or worker; empty where there is none. */
function pageOrigin(): string {
  const { origin } = globalThis as { readonly origin?: unknown };
  return typeof origin === 'string' ? origin : '';
}

/** A browser does not say whether a host is down or keeps pages out. */
function pageHint({ url }: HttpRequest): string {
  const origin = pageOrigin();
  if (origin === '' || origin === new URL(url).origin) return '';
  return `: it is not reachable, or it does not let pages of ${origin} read it (CORS)`;
}

async function readBody(response: Response, request: HttpRequest): Promise<Uint8Array> {
  // Some platforms (React Native) have no streams: they have received the body before it is refused.
  if (!response.body) {
    requireFit(Number(response.headers.get('content-length')), request);
    const whole = new Uint8Array(await orUnreachable(response.arrayBuffer(), request));
    requireFit(whole.length, request);
    return whole;
  }
  const received = new BodyBuffer(request.maxBytes);
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await orUnreachable(reader.read(), request);
    if (done) break;
    if (received.add(value)) continue;
    reader.cancel().catch(() => undefined);
    throw oversized(request);
  }
  return received.whole();
}

function requireFit(length: number, request: HttpRequest): void {
  if (length > request.maxBytes) throw oversized(request);
}

function openSocket(url: string, events: SocketEvents, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const socket = new WebSocket(url);
    const { webSocketMessageBytes: most } = limits;
    const abort = () => {
      socket.close();
      reject(signal.reason);
    };
    signal.addEventListener('abort', abort, { once: true });
    socket.onopen = () => {
      // The platform would unpack a message of any size before this program sees it.
      if (socket.extensions) return closeSocket(socket, 1000);
      signal.removeEventListener('abort', abort);
      resolve({ send: (text) => socket.send(text), close: (code) => closeSocket(socket, code) });
    };
    socket.onmessage = ({ data }) => {
      if (typeof data !== 'string') events.message(undefined);
      // Each UTF-16 unit has at least one byte: what is far too long is not encoded.
      else if (data.length > most || new TextEncoder().encode(data).length > most) {
        events.oversized();
      } else events.message(data);
    };
    socket.onclose = ({ code }) => {
      signal.removeEventListener('abort', abort);
      reject(
        new RelayUnreachable(`no connection to ${new URL(url).origin}`, { outcomeUnknown: false }),
      );
      events.closed(`closed with status ${code}`);
    };
  });
}

/** Browsers let a page close with 1000 or 3000 to 4999 only. */
function closeSocket(socket: WebSocket, code: number): void {
  try {
    socket.close(code);
  } catch {
    socket.close();
  }
}
