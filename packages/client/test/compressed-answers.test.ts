/** Compressed answers that are a thousand times as long as what is received: refused, not unpacked. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { brotliCompressSync, gzipSync, constants as zlib } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { webTransport } from '../src/index.ts';
import { LyingRelay } from './support/lying-relay.ts';
import { impatient } from './support/restartable-client.ts';

const mebibyte = 1_048_576;
const zeros = Buffer.alloc(64 * mebibyte);
/** One gibibyte in one mebibyte: the members of a gzip body are unpacked one after another. */
const gzip = Buffer.concat(Array(16).fill(gzipSync(zeros, { level: 9 })));
const br = brotliCompressSync(zeros, { params: { [zlib.BROTLI_PARAM_QUALITY]: 1 } });
const bombs = { gzip, br };

let server: Server;
let relay: LyingRelay;
beforeAll(async () => {
  server = createServer(({ url }, response) => {
    const coding = url?.slice(1) as keyof typeof bombs;
    response.writeHead(200, { 'content-encoding': coding });
    response.end(bombs[coding]);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  relay = await LyingRelay.start();
});
afterAll(async () => {
  server.close();
  server.closeAllConnections();
  await relay[Symbol.asyncDispose]();
});

test.each(Object.keys(bombs))('fetch: a body in %s ends at the limit, unpacked', async (coding) => {
  const { port } = server.address() as AddressInfo;
  const before = process.memoryUsage().rss;
  const asked = webTransport.request({
    verb: 'GET',
    url: `http://127.0.0.1:${port}/${coding}`,
    headers: {},
    signal: AbortSignal.timeout(30_000),
    maxBytes: 16 * mebibyte,
  });
  await expect(asked).rejects.toMatchObject({
    code: 'relay_misbehaviour',
    reason: 'oversized_response',
    message: expect.stringContaining(`report it to the operator of http://127.0.0.1:${port}`),
  });
  expect(process.memoryUsage().rss - before).toBeLessThan(256 * mebibyte);
});

test.each(Object.keys(bombs))(
  'Node: an answer in %s, which was not asked for, is not unpacked; the error names the cure',
  async (coding) => {
    const account = await relay.world.person(impatient);
    relay.overHttp.set('message.timeline.sync', (response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': coding });
      response.end(bombs[coding as keyof typeof bombs]);
    });
    const before = process.memoryUsage().rss;
    await expect(account.sync()).rejects.toMatchObject({
      code: 'relay_misbehaviour',
      reason: 'malformed_response',
      message: expect.stringContaining("ask the relay's operator to turn compression off"),
    });
    expect(process.memoryUsage().rss - before).toBeLessThan(256 * mebibyte);
    relay.behave();
    expect(await account.sync()).toEqual([]);
  },
);
