/** Runs the programs of a README, in a folder where the packages are installed. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { build } from 'esbuild';
import { chromium } from 'playwright-core';

/** Returns the blocks of JavaScript of a page in Markdown. */
export function programsOf(text: string): string[] {
  return [...text.matchAll(/^```js\n(.*?)^```/gms)].map(([, program = '']) => program);
}

/** Starts a program on Node, and returns the first line that it prints. */
export async function runBot(
  program: string,
  { folder, relay }: { readonly folder: string; readonly relay: string },
) {
  writeFileSync(join(folder, 'bot.js'), program);
  const bot = spawn(process.execPath, ['bot.js'], {
    ...{ cwd: folder, env: { ...process.env, RELAY_FOLDER: relay } },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(bot, 'exit');
  const [firstLine] = (await once(createInterface(bot.stdout), 'line')) as [string];
  return {
    firstLine,
    async [Symbol.asyncDispose]() {
      bot.kill();
      await ended;
    },
  };
}

/** Serves a program as a page, bundled, with `registry.json` next to it, and shows it in Chromium. */
export async function showPage(
  program: string,
  options: { readonly folder: string; readonly registry: string; readonly chromiumPath: string },
) {
  const { folder, registry, chromiumPath } = options;
  const { outputFiles } = await build({
    stdin: { contents: program, resolveDir: folder },
    ...({ bundle: true, minify: true, format: 'esm', platform: 'browser', write: false } as const),
  });
  const files: Readonly<Record<string, readonly [string, string]>> = {
    '/': ['text/html', '<!doctype html><body><script type=module src=page.js></script>'],
    '/page.js': ['text/javascript', outputFiles[0]?.text ?? ''],
    '/registry.json': ['application/json', registry],
  };
  const server = createServer(({ url = '' }, response) => {
    const [type, text] = files[url] ?? ['text/plain', ''];
    response.writeHead(text === '' ? 404 : 200, { 'content-type': type }).end(text);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const browser = await chromium.launch({
    executablePath: chromiumPath,
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking'],
  });
  const page = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage();
  const { port } = server.address() as AddressInfo;
  return {
    open: (hash: string) => page.goto(`http://127.0.0.1:${port}/${hash}`),
    text: () => page.evaluate('document.body.innerText') as Promise<string>,
    async [Symbol.asyncDispose]() {
      await browser.close();
      server.close();
    },
  };
}
