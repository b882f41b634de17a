import { limits } from '@posthouse/protocol';
import { ClientError, isClientError, RelayMisbehaviour, RelayUnreachable } from '../errors.ts';
import type { HttpRequest, HttpResponse, Socket, SocketEvents, Transport } from './transport.ts';

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
  try {
    const response = await fetchWith(request, request.redirects === 'report' ? 'manual' : 'error');
    if (response.type === 'opaqueredirect') return await answerOf(await followed(request), request);
    return await answerOf(response, request);
  } catch (cause) {
    request.signal.throwIfAborted();
    if (isClientError(cause)) throw cause;
    throw new RelayUnreachable(
      `no answer from ${new URL(request.url).origin}${pageHint(request)}`,
      {
        outcomeUnknown: true,
        cause,
      },
    );
  }
}

function fetchWith(
  request: HttpRequest,
  redirect: 'error' | 'follow' | 'manual',
): Promise<Response> {
  return fetch(request.url, {
    method: request.verb,
    headers: { ...request.headers },
    ...(request.body === undefined ? {} : { body: request.body }),
    signal: request.signal,
    redirect,
    credentials: 'omit',
    cache: 'no-store',
    referrerPolicy: 'no-referrer',
  });
}

/**
 * Follows redirects of which the browser hides the target. A page of an HTTPS origin makes no request
 * without HTTPS, also after a redirect; for any other page this cannot be known before (04 §9.1).
 */
async function followed(request: HttpRequest): Promise<Response> {
  if (!pageOrigin().startsWith('https:')) {
    throw new ClientError(
      'verification_failed',
      'a redirect, of which this page cannot tell that it leads to HTTPS: serve the app over HTTPS',
    );
  }
  return await fetchWith(request, 'follow');
}

async function answerOf(response: Response, { maxBytes }: HttpRequest): Promise<HttpResponse> {
  return {
    status: response.status,
    contentType: response.headers.get('content-type') ?? undefined,
    location: response.headers.get('location') ?? undefined,
    body: await readBody(response, maxBytes),
  };
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

async function readBody(response: Response, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += chunk.length;
    if (length > maxBytes) {
      throw new RelayMisbehaviour('oversized_response', `response over ${maxBytes} bytes`);
    }
    chunks.push(chunk);
  }
  const body = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    body.set(chunk, at);
    at += chunk.length;
  }
  return body;
}

function openSocket(url: string, events: SocketEvents, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url);
    const abort = () => {
      socket.close();
      reject(signal.reason);
    };
    signal.addEventListener('abort', abort, { once: true });
    socket.onopen = () => {
      signal.removeEventListener('abort', abort);
      resolve({ send: (text) => socket.send(text), close: (code) => closeSocket(socket, code) });
    };
    socket.onmessage = ({ data }) => {
      if (typeof data !== 'string') events.message(undefined);
      else if (new TextEncoder().encode(data).length > limits.webSocketMessageBytes) {
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
