import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { type ClientOptions, WebSocket } from 'ws';
import { type Check, type Finding, failed, notRunning, ok } from './check.ts';
import type { CheckedRelay } from './checked-relay.ts';
import { type ProxyHeaders, proxyLines } from './proxy-lines.ts';

/** Milliseconds for a WebSocket to open, and for the relay's first answer on it. */
const patience = 5_000;

/** What the relay answers first, in bytes. */
const maxPayload = 65_536;

/** Whether a WebSocket opens at the public address and messages pass: proxies often need a setting. */
export const publicWebSocket: Check = {
  name: 'public websocket',
  scope: 'network',
  needs: ['descriptor'],
  cure: 'let public.wss lead to the running relay',
  async find(relay, signal) {
    if (!relay.isRunning) return notRunning;
    const { endpoints } = await relay.descriptor;
    const address = endpoints.find((item) => item.startsWith('wss:')) as string;
    const secureContext = await relay.secureContext;
    // The library passes the options of `tls.connect` on.
    const options: ClientOptions & { lookup: unknown } = {
      ...{ perMessageDeflate: false, followRedirects: false, maxPayload },
      lookup: relay.filter.lookup,
      ...(secureContext !== undefined && { secureContext }),
    };
    const socket = new WebSocket(address, options);
    const refused = new Promise<Finding>((resolve) => {
      socket.once('unexpected-response', (_, { statusCode, headers }: IncomingMessage) =>
        resolve(
          noUpgrade(
            `${address} answers with status ${statusCode}, and no WebSocket opens`,
            headers,
          ),
        ),
      );
    });
    const failure = new Promise<never>((_, reject) => socket.once('error', reject));
    socket.on('error', () => {});
    try {
      return await Promise.race([opened(relay, socket, address, signal), refused, failure]);
    } finally {
      socket.terminate();
    }
  },
};

/** Waits until the WebSocket is open, and for an answer of this relay on it. */
async function opened(
  { identity }: CheckedRelay,
  socket: WebSocket,
  address: string,
  stop: AbortSignal,
): Promise<Finding> {
  const headers = await inTime(stop, (signal) => once(socket, 'upgrade', { signal })).then(
    ([answer]) => (answer as IncomingMessage).headers,
    rethrowUnless('TimeoutError'),
  );
  if (headers === undefined) {
    return noUpgrade(`${address}: no answer to a request for a WebSocket in ${patience / 1_000} s`);
  }
  if (socket.readyState === WebSocket.CONNECTING) await once(socket, 'open', { signal: stop });
  socket.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'relay.info', params: {} }));
  const text = await inTime(stop, (signal) => once(socket, 'message', { signal })).then(
    ([data]) => String(data),
    rethrowUnless('TimeoutError'),
  );
  if (text === undefined) {
    return noUpgrade(`a WebSocket opens at ${address}, and no message comes back`, headers);
  }
  const { relayId } = await identity;
  if (!text.includes(`"${relayId}"`)) {
    return failed(
      `another server answers on the WebSocket at ${address}`,
      'let public.wss lead to this relay',
    );
  }
  return ok(`opens at ${address}, and messages pass`);
}

/** Runs work that ends after {@link patience}. */
async function inTime<T>(stop: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(patience)]);
  return await work(signal).catch((error: unknown) => {
    throw signal.aborted ? signal.reason : error;
  });
}

const rethrowUnless =
  (name: string) =>
  (error: Error): undefined => {
    if (error.name !== name) throw error;
  };

function noUpgrade(seen: string, headers?: ProxyHeaders): Finding {
  return failed(
    seen,
    `let the proxy pass WebSockets on, or correct public.wss. ${proxyLines('upgrade', headers)}`,
  );
}
