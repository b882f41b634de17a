/** The transport of the platform's `fetch`, on Node; test/web/ uses it in browsers. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { WebSocketServer } from 'ws';
import { type HttpRequest, webTransport } from '../src/index.ts';

const maxBytes = 1_000;
let server: Server;
let base = '';
beforeAll(async () => {
  server = createServer(({ url }, response) => {
    const length = Number(url?.slice(1));
    if (url === '/cut') response.writeHead(200, { 'content-length': 9 }).write('x');
    if (url === '/cut') setImmediate(() => response.destroy());
    // In pieces, and without its length.
    for (let sent = 0; sent < length; sent += 100) {
      response.write('x'.repeat(Math.min(100, length - sent)));
    }
    if (url !== '/cut') response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());
afterEach(() => {
  vi.unstubAllGlobals();
});

const ask = (path: string, options: Partial<HttpRequest> = {}) =>
  webTransport.request({
    ...{ verb: 'GET', url: `${base}${path}`, headers: {}, maxBytes },
    ...{ signal: new AbortController().signal, ...options },
  });

/** What the platform's `fetch` answers, with other members. */
function stubResponses(change: (response: Response) => object): void {
  const { fetch } = globalThis;
  vi.stubGlobal('fetch', async (request: Request) => {
    const response = await fetch(request);
    const changed = change(response);
    return new Proxy(response, {
      get: (of, name) => {
        const value = Reflect.get(Object.hasOwn(changed, name) ? changed : of, name);
        return typeof value === 'function' ? value.bind(of) : value;
      },
    });
  });
}

const platforms: Record<string, (response: Response) => object> = {
  'with streams': () => ({}),
  'whose streams have no async iterator (WebKit)': ({ body }) => ({
    body: body && { getReader: () => body.getReader() },
  }),
  'without streams (React Native)': () => ({ body: undefined }),
};

describe.each(Object.entries(platforms))('on a platform %s', (_, change) => {
  test('a body of any length up to the limit is read, and a longer one is refused', async () => {
    stubResponses(change);
    for (const length of [0, 1, maxBytes - 1, maxBytes]) {
      expect((await ask(`/${length}`)).body.length).toBe(length);
    }
    await expect(ask(`/${maxBytes + 1}`)).rejects.toMatchObject({
      code: 'relay_misbehaviour',
      reason: 'oversized_response',
    });
  });

  test('if the connection breaks, the relay is unreachable and the outcome is unknown', async () => {
    stubResponses(change);
    await expect(ask('/cut')).rejects.toMatchObject({
      ...{ code: 'relay_unreachable', outcomeUnknown: true },
    });
  });
});

test('an error of this program is not reported as RelayUnreachable', async () => {
  await expect(ask('/1', { headers: { 'no name': 'x' } })).rejects.toThrow(TypeError);
  await expect(ask('/1', { body: 'a GET has none' })).rejects.toThrow(TypeError);
  stubResponses((response) => ({
    headers: {
      get() {
        throw new RangeError(`a fault while ${response.status} is read`);
      },
    },
  }));
  await expect(ask('/1')).rejects.toThrow(RangeError);
});

test('an aborted request fails with the reason of its signal', async () => {
  const reason = new Error('enough');
  await expect(ask('/1', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  const socket = webTransport.connect?.(
    'wss://127.0.0.1:1',
    { message() {}, oversized() {}, closed() {} },
    AbortSignal.abort(reason),
  );
  await expect(socket).rejects.toBe(reason);
});

test.each([
  ['is closed unread if the relay compresses messages', true],
  ['opens if the relay does not', false],
])('a WebSocket %s', async (_, perMessageDeflate) => {
  const sockets = await new Promise<WebSocketServer>((resolve) => {
    const opened: WebSocketServer = new WebSocketServer(
      { ...{ host: '127.0.0.1', port: 0 }, perMessageDeflate },
      () => resolve(opened),
    );
  });
  using _end = { [Symbol.dispose]: () => sockets.close() };
  sockets.on('connection', (socket) => socket.on('message', (data) => socket.send(String(data))));
  const { port } = sockets.address() as AddressInfo;
  const received = Promise.withResolvers<string | undefined>();
  const opening = webTransport.connect?.(
    `ws://127.0.0.1:${port}`,
    { message: received.resolve, oversized() {}, closed() {} },
    new AbortController().signal,
  );
  if (perMessageDeflate) {
    return await expect(opening).rejects.toMatchObject({ code: 'relay_unreachable' });
  }
  const socket = await opening;
  socket?.send('hello');
  expect(await received.promise).toBe('hello');
  socket?.close(1000);
});
