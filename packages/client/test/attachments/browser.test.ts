/** Downloads in a real browser, which hides redirects and does not say why a host does not answer. */
import { existsSync, readFileSync } from 'node:fs';
import {
  createServer as createPlainServer,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sealContent, utf8 } from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { build } from 'esbuild';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { network, RelayWithClients } from '../support/relay-with-clients.ts';

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find((path) =>
  existsSync(path),
);

const program = `
import { Network } from '@posthouse/protocol';
import { noblePrimitives } from '@posthouse/protocol/crypto';
import { downloadContent, webTransport } from './src/index.ts';
globalThis.download = async (network, reference) => {
  const signal = AbortSignal.timeout(20000);
  const options = { transport: webTransport, signal };
  try {
    const of = new Network({ ...network, primitives: noblePrimitives });
    return new TextDecoder().decode(await downloadContent(of, reference, options));
  } catch ({ code, message }) {
    return code + ': ' + message;
  }
};`;

const { body, reference } = sealContent(network, {
  ...{ plaintext: utf8('the picture'), contentType: 'image/png', random: nodeRandom },
});

const open = { 'access-control-allow-origin': '*' };

describe.skipIf(executablePath === undefined)('04 §9.1: downloads of a page', () => {
  let server: Server;
  let browser: Browser;
  let page: Page;
  let script = '';
  /** Another origin than the page's. */
  let host = '';
  /** A service without HTTPS on the reader's own machine, which every page may read. */
  let plain: ReturnType<typeof createPlainServer>;
  let plainRequests = 0;

  function serve({ url = '' }: IncomingMessage, response: ServerResponse): void {
    if (url === '/')
      response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html>');
    else if (url === '/open') response.writeHead(200, open).end(body);
    else if (url === '/closed') response.end(body);
    else if (url === '/moved') response.writeHead(302, { ...open, location: '/open' }).end();
    else if (url === '/down') {
      const { port } = plain.address() as AddressInfo;
      response.writeHead(302, { ...open, location: `http://127.0.0.1:${port}/` }).end();
    } else response.writeHead(404, open).end();
  }

  beforeAll(async () => {
    await using world = await RelayWithClients.start();
    const file = (name: string) => readFileSync(join(world.folder, 'relay', 'tls', name), 'utf8');
    server = createServer({ key: file('server.key'), cert: file('server.pem') }, serve);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    plain = createPlainServer((_, response) => {
      plainRequests += 1;
      response.writeHead(200, open).end(body);
    });
    await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    host = `https://localhost:${port}`;
    const built = await build({
      stdin: { contents: program, resolveDir: fileURLToPath(new URL('../../', import.meta.url)) },
      ...({ bundle: true, write: false, platform: 'browser', format: 'iife' } as const),
      ...({ target: 'es2024', logLevel: 'silent' } as const),
    });
    script = built.outputFiles[0]?.text ?? '';
    browser = await chromium.launch({
      executablePath: executablePath as string,
      args: [
        ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking'],
        ...['--ignore-certificate-errors', '--host-resolver-rules=MAP localhost 127.0.0.1'],
      ],
    });
    page = await browser.newPage();
    await page.goto(`https://127.0.0.1:${port}/`);
    await page.addScriptTag({ content: script });
  });
  afterAll(async () => {
    await browser.close();
    server.close();
    plain.close();
  });

  const download = (path: string) =>
    page.evaluate(
      ({ about, content }) =>
        (globalThis as unknown as { download(a: object, b: object): Promise<string> }).download(
          about,
          content,
        ),
      {
        about: { context: network.context, word: network.word },
        content: { uri: `${host}${path}`, ...reference },
      },
    );

  test('content of another origin is downloaded and opened', async () => {
    expect(await download('/open')).toBe('the picture');
  });

  test('a redirect is an error that names the cure; an address without HTTPS is not requested', async () => {
    for (const path of ['/down', '/moved']) {
      expect(await download(path)).toMatch(
        /^verification_failed: .*redirect.*page.*ask the sender/,
      );
    }
    expect(plainRequests).toBe(0);
  });

  test('the error for a host that keeps pages out says what may be the cause', async () => {
    expect(await download('/closed')).toMatch(/^relay_unreachable: .*does not let pages of .*CORS/);
  });
});
