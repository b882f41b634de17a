/** Uploads of a page in Chromium whose progress is told: they end, fail and are refused as those of `fetch` do. */
import { existsSync, readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RelayWithClients } from '../support/relay-with-clients.ts';

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find((path) =>
  existsSync(path),
);

/** More than what the system and the browser take before the other end reads. */
const bytes = 33_554_432;

const program = `
import { uploadTransport } from './src/web/upload-transport.ts';
globalThis.sent = [];
globalThis.stop = new AbortController();
globalThis.put = async (url, { isTold = true, length = 1000 } = {}) => {
  sent.length = 0;
  try {
    const { status, contentType, body } = await uploadTransport.request({
      ...{ verb: 'PUT', url, headers: { 'x-token': 'secret' }, body: new Uint8Array(length) },
      ...{ signal: stop.signal, maxBytes: 100, ...(isTold && { progress: (of) => sent.push(of) }) },
    });
    return { status, contentType, text: new TextDecoder().decode(body) };
  } catch ({ code, message, outcomeUnknown }) {
    return { code, message, outcomeUnknown };
  }
};`;

/** What a relay permits to pages of other origins. */
const open = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'GET, PUT',
  'access-control-allow-headers': 'content-type, x-token',
};

describe.skipIf(executablePath === undefined)('02 §2.6, 04 §10: uploads of a page', () => {
  const servers: Server[] = [];
  let origin: string;
  let other: string;
  let browser: Browser;
  let page: Page;
  /** Tokens that the other origin was sent. */
  const tokens: unknown[] = [];
  const held: IncomingMessage[] = [];

  const answers: Record<string, (request: IncomingMessage, response: ServerResponse) => void> = {
    '/': (_, response) => response.setHeader('content-type', 'text/html').end('<!doctype html>'),
    '/stored': (_, response) => response.writeHead(201, { 'content-type': 'a/b' }).end('done'),
    '/refused': (_, response) => response.writeHead(429).end('too much'),
    '/long': (_, response) => response.end('x'.repeat(101)),
    '/closed': ({ socket }) => socket.destroy(),
    '/moved': (_, response) => response.writeHead(307, { location: '/stored' }).end(),
    '/elsewhere': (_, response) => response.writeHead(307, { location: `${other}/` }).end(),
  };

  function serve(request: IncomingMessage, response: ServerResponse): void {
    const answer = () => answers[request.url ?? '']?.(request, response);
    if (request.url === '/held') {
      // Nothing is read before the test wants it.
      held.push(request);
      request.on('end', () => response.end('at last'));
      request.pause();
    } else request.resume().on('end', answer);
  }

  async function listen(handler: typeof serve, tls: (name: string) => string): Promise<string> {
    const server = createServer({ key: tls('server.key'), cert: tls('server.pem') }, handler);
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  beforeAll(async () => {
    await using world = await RelayWithClients.start();
    const tls = (name: string) => readFileSync(join(world.folder, 'relay', 'tls', name), 'utf8');
    origin = await listen(serve, tls);
    other = await listen((request, response) => {
      if (request.headers['x-token'] !== undefined) tokens.push(request.headers['x-token']);
      request.resume().on('end', () => response.writeHead(200, open).end('elsewhere'));
    }, tls);
    const built = await build({
      stdin: { contents: program, resolveDir: fileURLToPath(new URL('../../', import.meta.url)) },
      ...{ bundle: true, write: false, format: 'iife', platform: 'browser' },
    });
    browser = await chromium.launch({
      executablePath: executablePath as string,
      args: ['--headless', '--no-sandbox', '--disable-gpu'],
    });
    page = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage();
    await page.goto(origin);
    await page.evaluate(built.outputFiles[0]?.text ?? '');
  });
  afterAll(async () => {
    await browser?.close();
    for (const server of servers) server.close();
  });

  const put = (path: string, options: object = {}) =>
    page.evaluate(`put(${JSON.stringify(new URL(path, origin))}, ${JSON.stringify(options)})`);
  const sent = async () => (await page.evaluate('sent')) as number[];

  test('04 §10: progress is told while the other end reads, and grows to all bytes', async () => {
    const putting = put('/held', { length: bytes });
    await expect.poll(sent).not.toEqual([]);
    const [first = bytes] = await sent();
    expect(first).toBeLessThan(bytes);
    held[0]?.resume();
    expect(await putting).toMatchObject({ status: 200, text: 'at last' });
    const all = await sent();
    expect(all).toEqual(all.toSorted((a, b) => a - b));
    expect(all.at(-1)).toBe(bytes);
  });

  test.each(['/stored', '/refused', '/long', '/closed', '/moved', '/elsewhere'])(
    '02 §2.6: %s ends as it does with fetch',
    async (path) => {
      const outcome = await put(path);
      expect(outcome).toEqual(await put(path, { isTold: false }));
      expect(outcome).toMatchObject(
        {
          '/stored': { status: 201, contentType: 'a/b', text: 'done' },
          '/refused': { status: 429, text: 'too much' },
          '/long': { code: 'relay_misbehaviour' },
        }[path] ?? { code: 'relay_unreachable', outcomeUnknown: true },
      );
    },
  );

  test('02 §2.6: a redirect to another origin, which permits requests of pages, gets no token', async () => {
    await put('/elsewhere');
    expect(tokens).toEqual([]);
  });

  test('02 §8: to another origin than its own, a page sends with fetch, which tells no progress', async () => {
    expect(await put(`${other}/`)).toMatchObject({ status: 200, text: 'elsewhere' });
    expect(await sent()).toEqual([]);
    expect(tokens).toEqual(['secret']);
  });

  test('04 §10: an abort ends the upload with its reason', async () => {
    const putting = put('/held', { length: bytes });
    await expect.poll(sent).not.toEqual([]);
    const closed = new Promise((resolve) => held[1]?.once('close', resolve));
    held[1]?.on('error', () => undefined);
    await page.evaluate(`stop.abort(Object.assign(new Error('enough'), { code: 'mine' }))`);
    expect(await putting).toEqual({ code: 'mine', message: 'enough' });
    held[1]?.resume();
    await closed;
  });
});
