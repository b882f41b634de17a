/** 04 §10: uploads in Node whose progress is told. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
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
