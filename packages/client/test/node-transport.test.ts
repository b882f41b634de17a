/** Requests and WebSockets in Node: uploads whose progress is told (04 §10), and peers that do odd things. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { WebSocketServer } from 'ws';
import type { HttpRequest } from '../src/index.ts';
import { NodeTransport } from '../src/node.ts';

let server: Server;
let transport: NodeTransport;
/** Bodies that arrived whole. */
let stored: Buffer[];
beforeEach(async () => {
  stored = [];
  transport = new NodeTransport();
  server = createServer(async (request, response) => {
    const body = await buffer(request).catch(() => undefined);
    if (body === undefined) return;
    stored.push(body);
    response.end('stored');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterEach(async () => {
  transport[Symbol.dispose]();
  await new Promise((resolve) => server.close(resolve));
});

function put(body: NonNullable<HttpRequest['body']>, progress: (sent: number) => void) {
  const { port } = server.address() as AddressInfo;
  return transport.request({
    ...{ verb: 'PUT', url: `http://127.0.0.1:${port}/`, headers: {}, body, progress },
    ...{ signal: AbortSignal.timeout(30_000), maxBytes: 1_000 },
  });
}

describe('04 §10: a request whose progress is told', () => {
  test('sends a part of a buffer, or a text, by parts', async () => {
    const whole = new Uint8Array(200_000).map((_, index) => index % 251);
    const part = whole.subarray(1_000, 101_000);
    const sent: number[] = [];
    const { status } = await put(part, (bytes) => sent.push(bytes));
    expect(status).toBe(200);
    expect(sent).toEqual([65_536, 100_000]);
    await put('ä', (bytes) => sent.push(bytes));
    expect(sent.at(-1)).toBe(2);
    expect(stored).toEqual([Buffer.from(part), Buffer.from('ä')]);
  });

  test('fails with the error that `progress` throws, and is not sent to its end', async () => {
    const cause = new Error('a fault of the app');
    const failing = put(new Uint8Array(1_000_000), () => {
      throw cause;
    });
    await expect(failing).rejects.toMatchObject({ code: 'relay_unreachable', cause });
    expect(stored).toEqual([]);
  });
});

describe('02 §3: a peer that does odd things', () => {
  const maxBytes = 16_777_216;

  /** What this server writes instead of an answer. */
  function ask(answer: (socket: Socket) => void) {
    server.removeAllListeners('request');
    server.on('request', ({ socket }) => answer(socket));
    const { port } = server.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}/`;
    return transport.request({
      ...{ verb: 'GET', url, headers: {}, maxBytes, signal: AbortSignal.timeout(60_000) },
    });
  }

  test('one byte in each chunk: a body takes about the memory of its bytes', async () => {
    const chunks = 1_500_000;
    const before = process.memoryUsage().rss;
    const { body } = await ask((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
      socket.end(`${'1\r\nx\r\n'.repeat(chunks)}0\r\n\r\n`);
    });
    expect(body.length).toBe(chunks);
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1_048_576);
  });

  test('an upgrade that was not asked for is no answer', async () => {
    const asked = ask((socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n');
    });
    await expect(asked).rejects.toMatchObject({ code: 'relay_unreachable', outcomeUnknown: true });
  });
});

describe('02 §3.3: a WebSocket', () => {
  /** Opens one; `write` gets the socket of the other end, after the handshake. */
  async function opened(write: (socket: Socket) => void) {
    const sockets = new WebSocketServer({ server });
    // Nothing of the other end answers a close.
    sockets.on('connection', (_webSocket, { socket }) => {
      socket.removeAllListeners('data');
      write(socket);
    });
    const { port } = server.address() as AddressInfo;
    const messages: (string | undefined)[] = [];
    const end = Promise.withResolvers<string>();
    const events = {
      ...{ message: (text: string | undefined) => messages.push(text), closed: end.resolve },
      oversized() {},
    };
    const { signal } = new AbortController();
    const url = `ws://127.0.0.1:${port}`;
    return { socket: await transport.connect(url, events, signal), messages, ended: end.promise };
  }

  const frame = (first: number, payload = '') =>
    Buffer.from([first, payload.length, ...Buffer.from(payload)]);
  const part = frame(0, 'x');

  test('takes a message in 1,024 frames, and none in more', async () => {
    const message = (frames: number) =>
      Buffer.concat([frame(1, 'x'), ...Array<Buffer>(frames - 2).fill(part), frame(0x80, 'x')]);
    const { messages, ended } = await opened((socket) => {
      socket.write(Buffer.concat([message(1_024), message(1_025)]));
    });
    await ended;
    expect(messages).toEqual(['x'.repeat(1_024)]);
  });

  test('is closed if the other end says so, and leaves the connection open', {
    timeout: 20_000,
  }, async () => {
    const { ended } = await opened((socket) => socket.write(frame(0x88)));
    expect(await ended).toMatch(/^closed with status/);
  });
});
