import { limits } from '@posthouse/protocol';
import { RelayMisbehaviour, RelayUnreachable } from '../errors.ts';
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
  ...(typeof WebSocket === 'undefined' ? {} : { connect: openSocket }),
};

async function fetchOnce(request: HttpRequest): Promise<HttpResponse> {
  try {
    const response = await fetch(request.url, {
      method: request.verb,
      headers: { ...request.headers },
      ...(request.body === undefined ? {} : { body: request.body }),
      signal: request.signal,
      redirect: 'error',
      credentials: 'omit',
      cache: 'no-store',
    });
    return {
      status: response.status,
      contentType: response.headers.get('content-type') ?? undefined,
      body: await readBody(response, request.maxBytes),
    };
  } catch (cause) {
    request.signal.throwIfAborted();
    if (cause instanceof RelayMisbehaviour) throw cause;
    throw new RelayUnreachable(`no answer from ${new URL(request.url).origin}`, {
      outcomeUnknown: true,
      cause,
    });
  }
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
