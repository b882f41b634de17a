/** WebKit, over WebDriver: JSON over HTTP, to the driver that comes with the library. */
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { temporaryFolder } from '../../../../relay/test/support/folder.ts';
import { patience } from '../../../../relay/test/support/patience.ts';
import { asOutcome, type Browser, lineOf, outcomeOf, type Page, untilTrue } from './engine.ts';

/** Milliseconds that the driver waits for a script. */
const scriptTimeout = 300_000;

// biome-ignore lint/suspicious/noExplicitAny: results of any command.
type Json = any;

/** Style of the browser's own buttons: as they are usually, no window is narrower than 447 pixels. */
const smallButtons = '* { font-size: 1px; min-width: 0; padding: 0; }';

const untilDrawn =
  'new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve())))';

/** @param port of the driver; the next one is for its browser */
export async function openWebKit(executable: string, port: number): Promise<Browser> {
  await using parts = new AsyncDisposableStack();
  const folder = parts.use(temporaryFolder());
  const style = join(folder.path, '.config/gtk-3.0');
  mkdirSync(style, { recursive: true });
  writeFileSync(join(style, 'gtk.css'), smallButtons);
  const start = (command: string, args: string[], env: object) => {
    const started = spawn(command, args, {
      stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
      env: { ...process.env, HOME: folder.path, XDG_RUNTIME_DIR: folder.path, ...env },
    });
    parts.defer(async () => {
      const ended = new Promise((resolve) => started.once('exit', resolve));
      if (started.exitCode === null && started.kill()) await ended;
    });
    return started;
  };
  // It has no display of its own; Xvfb writes the number of the one it made.
  const screen = start('Xvfb', ['-displayfd', '3', '-nolisten', 'tcp'], {});
  const [, display] = await lineOf(screen.stdio[3] as NodeJS.ReadableStream, /(\d+)\n/, 'Xvfb');
  start(executable, [`--port=${port}`, '--host=127.0.0.1'], { DISPLAY: `:${display}` });
  const call = async (verb: string, path: string, body?: object): Promise<Json> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: verb,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const { value } = (await response.json()) as Json;
    if (!response.ok) throw new Error(`${path}: ${value.error}: ${value.message}`);
    return value;
  };
  // Not Vitest's: benches drive browsers too.
  for (let waited = 0; ; waited += 100) {
    const isReady = await call('GET', '/status').then(
      () => true,
      () => false,
    );
    if (isReady) break;
    if (waited > patience.timeout) throw new Error(`${executable} does not answer`);
    await sleep(100);
  }
  const { sessionId } = await call('POST', '/session', {
    capabilities: {
      alwaysMatch: { acceptInsecureCerts: true, timeouts: { script: scriptTimeout } },
    },
  });
  const session = `/session/${sessionId}`;
  parts.defer(async () => {
    await call('DELETE', session);
  });
  const rest = parts.move();
  return {
    ...{ complaints: [], page: pageOf(call, session) },
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  };
}

/** The page of a session. */
function pageOf(
  call: (verb: string, path: string, body?: object) => Promise<Json>,
  session: string,
): Page {
  const page: Page = {
    async open(url) {
      await call('POST', `${session}/url`, { url });
    },
    async run(expression) {
      const script = `const done = arguments[0]; ${asOutcome(expression)}.then(done);`;
      return outcomeOf(await call('POST', `${session}/execute/async`, { script, args: [] }));
    },
    async resize(width, height) {
      await call('POST', `${session}/window/rect`, { width, height });
      await page.run(untilTrue(`innerWidth === ${width}`));
    },
    async picture() {
      // What was drawn last may be older than what the page is now.
      await page.run(untilDrawn);
      return Buffer.from(await call('GET', `${session}/screenshot`), 'base64');
    },
  };
  return page;
}
