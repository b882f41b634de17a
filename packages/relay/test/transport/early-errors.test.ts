import { once } from 'node:events';
import { ServerResponse } from 'node:http';
import { type AddressInfo, connect as connectPlain } from 'node:net';
import { connect, TLSSocket } from 'node:tls';
import { errorCatalogue } from '@posthouse/protocol';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ByteAccounts } from '../../src/transport/byte-accounts.ts';
import { GatheredChunks } from '../../src/transport/gathered-chunks.ts';
import {
  acceptConnections,
  createServer,
  type ServerParts,
} from '../../src/transport/http-server.ts';
import { FakeSocket } from '../support/fake-socket.ts';
import { ServedRelay } from '../support/served-relay.ts';

/** 02 §3.2, §18: what the HTTP server and the WebSocket library refuse themselves is a `RelayError`. */

let relay: ServedRelay;
beforeAll(async () => {
  relay = await ServedRelay.start();
});
afterAll(() => relay[Symbol.asyncDispose]());

/** Sends bytes on a connection of their own, and returns everything until its end. */
async function exchange(text: string): Promise<string> {
  const { hostname, port } = new URL(relay.server.https[0] as string);
  const socket = connect({ host: hostname, port: Number(port), ca: relay.ca });
  let received = '';
  socket.on('data', (data) => {
    received += data;
  });
  socket.on('error', () => {});
  socket.write(text);
  await new Promise((resolve) => socket.on('close', resolve));
  return received;
}

const host = 'Host: x\r\nConnection: close\r\n';
const webSocket = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n';
const upgrade = 'Host: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n';

test.each([
  ['a broken chunk', 'zz\r\n'],
  ['an extension of 20,000 bytes', `1;${'a'.repeat(20_000)}\r\nx\r\n`],
])('02 §18: after %s in a body, its deadline has nothing to end', async (_, chunk) => {
  const answer = await exchange(
    'POST /svc/v1/auth/challenge HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n' +
      `Transfer-Encoding: chunked\r\n\r\n${chunk}`,
  );
  expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  // An error that no one catches would fail this run.
  relay.clock.advance(31);
  await new Promise((resolve) => setImmediate(resolve));
  expect(await exchange(`GET /svc/v1/relay/info HTTP/1.1\r\n${host}\r\n`)).toMatch(/ 200 /);
});

test.each([
  ['no HTTP', 'nonsense\r\n\r\n', 'bad_request'],
  ['a verb that does not exist', `FETCH /svc/v1/relay/info HTTP/1.1\r\n${host}\r\n`, 'bad_request'],
  ['a verb of WebDAV', `PROPFIND /svc/v1/relay/info HTTP/1.1\r\n${host}\r\n`, 'method_not_found'],
  ['CONNECT', `CONNECT x:443 HTTP/1.1\r\n${host}\r\n`, 'method_not_found'],
  [
    'headers of 20 KiB',
    `GET /svc/v1/relay/info HTTP/1.1\r\n${host}X-Long: ${'x'.repeat(20_480)}\r\n\r\n`,
    'request_too_large',
  ],
  ['no Host', 'GET /svc/v1/relay/info HTTP/1.1\r\nConnection: close\r\n\r\n', 'bad_request'],
  [
    'two lengths',
    `POST /svc/v1/auth/challenge HTTP/1.1\r\n${host}Content-Length: 1\r\nContent-Length: 2\r\n\r\nx`,
    'bad_request',
  ],
  [
    'a chunk that is none',
    `POST /svc/v1/auth/challenge HTTP/1.1\r\n${host}Content-Type: application/json\r\n` +
      'Transfer-Encoding: chunked\r\n\r\nnonsense\r\n',
    'bad_request',
  ],
  [
    'an upgrade to HTTP/2',
    `GET /svc/v1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n`,
    'bad_request',
  ],
  [
    'a WebSocket of another version',
    `GET /svc/v1 HTTP/1.1\r\n${upgrade}Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 7\r\n\r\n`,
    'bad_request',
  ],
  [
    'a WebSocket without a key',
    `GET /svc/v1 HTTP/1.1\r\n${upgrade}Sec-WebSocket-Version: 13\r\n\r\n`,
    'bad_request',
  ],
  [
    'a WebSocket with a body',
    `GET /svc/v1 HTTP/1.1\r\n${upgrade}${webSocket}Content-Length: 2\r\n\r\n{}`,
    'bad_request',
  ],
  [
    'a WebSocket with a part of a body',
    `GET /svc/v1 HTTP/1.1\r\n${upgrade}${webSocket}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n`,
    'bad_request',
  ],
] as const)('%s', async (_, text, code) => {
  const answer = await exchange(text);
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  expect(head).toMatch(new RegExp(`^HTTP/1.1 ${errorCatalogue[code].http} `));
  expect(head.toLowerCase()).toContain('content-type: application/json');
  expect(head.toLowerCase()).toContain('cache-control: no-store');
  expect(JSON.parse(body)).toEqual({ code, message: expect.stringMatching(/./) });
});

test('an expectation that is unknown is ignored (RFC 9110 §10.1.1)', async () => {
  const answer = await exchange(`GET /svc/v1/relay/info HTTP/1.1\r\n${host}Expect: much\r\n\r\n`);
  expect(answer).toMatch(/^HTTP\/1.1 200/);
});

test('Expect: 100-continue is answered before the body is read', async () => {
  const request = (length: number) =>
    `POST /svc/v1/auth/challenge HTTP/1.1\r\n${host}Content-Type: application/json\r\n` +
    `Expect: 100-continue\r\nContent-Length: ${length}\r\n\r\n`;
  expect(await exchange(`${request(2)}{}`)).toMatch(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 400/);
  expect(await exchange(request(2_097_153))).toMatch(/^HTTP\/1.1 413/);
});

test('a CONNECT whose connection is reset while it is answered ends nothing else', async () => {
  const { context } = relay.server;
  const bytes = new ByteAccounts(context);
  const parts = { context, bytes, tls: undefined, upgrade: () => {} };
  const server = createServer(parts as unknown as ServerParts, () => {});
  const socket = Object.assign(new FakeSocket(), { end: vi.fn() });
  server.emit('connect', {}, socket);
  expect(socket.end).toHaveBeenCalledOnce();
  socket.emit('error', new Error('ECONNRESET'));
  expect(socket.destroy).toHaveBeenCalledOnce();
});

test('02 §18: what follows a CONNECT is neither parsed nor held, and its connection ends', async () => {
  const { context } = relay.server;
  const bytes = new ByteAccounts(context);
  const clients = { of: () => '192.0.2.1', isProxy: () => false };
  const open = { add: () => true };
  const parts = { context, bytes, clients, open, tls: undefined, upgrade: () => {} };
  const handle = vi.fn();
  const server = createServer(parts as unknown as ServerParts, handle);
  using _waiting = acceptConnections(parts as unknown as ServerParts, server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  // The end of the connection would give back what it holds.
  let end = () => {};
  server.prependListener('connect', (_request, socket) => {
    const ends = vi.spyOn(socket, 'end').mockImplementation((text) => {
      ends.mockRestore();
      end = () => void socket.end(text);
      return socket;
    });
  });
  const connected = once(server, 'connect');
  const client = connectPlain((server.address() as AddressInfo).port, '127.0.0.1');
  let answer = '';
  client.on('data', (data) => {
    answer += data;
  });
  // Some pieces.
  client.write(
    `CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n${'GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1_000)}`,
  );
  await connected;
  for (let turn = 0; turn < 20; turn += 1) await new Promise((go) => setImmediate(go));
  expect(bytes.received.total).toBe(0);
  expect(handle).not.toHaveBeenCalled();
  end();
  await once(client, 'close');
  expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 400']);
  server.close();
});

test('02 §18: what waits on a connection that becomes a WebSocket is held, and read', async () => {
  const of = GatheredChunks.of;
  const ping = Buffer.from([0x89, 0x80, 0, 0, 0, 0]);
  const spy = vi.spyOn(GatheredChunks, 'of').mockImplementation((stream) => {
    if (stream instanceof TLSSocket) {
      // As a chunk that came with a request before, and was not parsed to its end.
      stream.pause();
      stream.push(ping);
      setImmediate(() => stream.resume());
    }
    return of(stream);
  });
  const { hostname, port } = new URL(relay.server.https[0] as string);
  const socket = connect({ host: hostname, port: Number(port), ca: relay.ca });
  socket.write(`GET /svc/v1 HTTP/1.1\r\n${upgrade}${webSocket}\r\n`);
  let received = '';
  for await (const data of socket) {
    received += (data as Buffer).toString('latin1');
    if (received.endsWith('\x8a\0')) break;
  }
  spy.mockRestore();
  expect(received).toMatch(/^HTTP\/1\.1 101 /);
});

test('02 §18: an orderly end closes idle connections once all that arrived was parsed', async () => {
  const { context } = relay.server;
  const bytes = new ByteAccounts(context);
  const parts = { context, bytes, tls: undefined, upgrade: () => {} };
  const server = createServer(parts as unknown as ServerParts, (_request, response) => {
    response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const idle = connectPlain(port, '127.0.0.1');
  const ended = once(idle, 'close');
  // A connection that was never used is no idle one for Node.
  idle.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(idle, 'data');
  let isWaiting = true;
  bytes.httpTurns.run('192.0.2.1', () => isWaiting);
  server.close();
  for (let turn = 0; turn < 20; turn += 1) await new Promise((go) => setImmediate(go));
  expect(idle.destroyed || idle.readableEnded).toBe(false);
  isWaiting = false;
  await ended;
});

test('§18: pipelined requests are answered one by one; the 17th at once is rate_limited', async () => {
  const { storage } = relay.server.context;
  const write = storage.write.bind(storage);
  let writes = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  storage.write = async (aggregates, work) => {
    writes += 1;
    await promise;
    return write(aggregates, work);
  };
  const body = JSON.stringify({ account: relay.person('ann').account });
  const post =
    'POST /svc/v1/auth/challenge HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n' +
    `Content-Length: ${body.length}\r\n\r\n${body}`;
  const warned = vi.fn();
  process.on('warning', warned);
  const answers = exchange(post.repeat(40));
  while (writes === 0) await new Promise((go) => setImmediate(go));
  for (let turn = 0; turn < 20; turn += 1) await new Promise((go) => setImmediate(go));
  expect(writes).toBe(1);
  storage.write = write;
  resolve();
  const statuses = [...(await answers).matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
  expect(statuses).toEqual([...Array.from({ length: 16 }, () => '200'), '429']);
  process.off('warning', warned);
  expect(warned).not.toHaveBeenCalled();
});

test('02 §18: of requests that arrive in one piece, those after the 17th are not parsed', async () => {
  const written = vi.spyOn(ServerResponse.prototype, 'writeHead');
  using _spy = { [Symbol.dispose]: () => written.mockRestore() };
  const answers = await exchange('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(200));
  expect(answers.match(/HTTP\/1\.1 /g)).toHaveLength(17);
  expect(answers).toContain('HTTP/1.1 429');
  expect(written.mock.calls.length).toBe(17);
});

test('02 §18: after what is no HTTP request, nothing is parsed', async () => {
  const answers = await exchange(`?${'GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(2_000)}`);
  expect(answers.match(/HTTP\/1\.1 /g)).toHaveLength(1);
  expect(answers).toContain('HTTP/1.1 400');
});
