/** Firefox, over WebDriver BiDi: JSON over a WebSocket that it opens itself. */
import { execFileSync, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../../../../relay/test/support/folder.ts';
import { asOutcome, type Browser, lineOf, outcomeOf, type Page, untilTrue } from './engine.ts';

/** A Firefox whose page can be ended as by a crash. */
export interface FirefoxBrowser extends Browser {
  /** Kills the processes of all pages. Afterwards `page` is another one, with nothing open. */
  killPage(): Promise<void>;
  /** Chooses the colours of pages, as the system's settings do. */
  setColors(colors: 'light' | 'dark'): Promise<void>;
}

/** Nothing is asked of the makers' servers. */
const settings = {
  'app.update.disabledForTesting': true,
  'browser.aboutHomeSnippets.updateUrl': '',
  'browser.newtabpage.enabled': false,
  'browser.safebrowsing.update.enabled': false,
  'browser.shell.checkDefaultBrowser': false,
  'datareporting.policy.dataSubmissionEnabled': false,
  'extensions.getAddons.cache.enabled': false,
  'extensions.systemAddon.update.enabled': false,
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
  'services.settings.server': 'data:,',
  'toolkit.telemetry.server': '',
};

// biome-ignore lint/suspicious/noExplicitAny: results of any command.
type Json = any;

/** @param more settings of this browser alone */
export async function openFirefox(
  executable: string,
  more: Readonly<Record<string, boolean | number | string>> = {},
): Promise<FirefoxBrowser> {
  await using parts = new AsyncDisposableStack();
  const folder = parts.use(temporaryFolder());
  const lines = Object.entries({ ...settings, ...more }).map(
    ([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});`,
  );
  writeFileSync(join(folder.path, 'user.js'), lines.join('\n'));
  const browser = spawn(
    executable,
    [
      ...['--headless', '--no-remote', '--profile', folder.path, '--remote-debugging-port', '0'],
      // Settings change while it runs: WebDriver has no command for them.
      '--remote-allow-system-access',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, HOME: folder.path } },
  );
  parts.defer(async () => {
    const ended = new Promise((resolve) => browser.once('exit', resolve));
    if (browser.exitCode === null && browser.kill('SIGKILL')) await ended;
  });
  const [, address] = await lineOf(browser.stderr, /BiDi listening on (ws:\S+)/, executable);
  const { call, evaluate, complaints } = await connect(`${address}/session`);
  await call('session.new', { capabilities: { alwaysMatch: { acceptInsecureCerts: true } } });
  await call('session.subscribe', { events: ['log.entryAdded'] });
  const { contexts } = await call('browsingContext.getTree', {});
  let [{ context }] = contexts;
  const page: Page = {
    async open(url) {
      await call('browsingContext.navigate', { context, url, wait: 'complete' });
    },
    async run(expression) {
      return outcomeOf(await evaluate({ context }, asOutcome(expression)));
    },
    async resize(width, height) {
      await call('browsingContext.setViewport', { context, viewport: { width, height } });
      await page.run(untilTrue(`innerWidth === ${width}`));
    },
    async picture() {
      const { data } = await call('browsingContext.captureScreenshot', { context });
      return Buffer.from(data, 'base64');
    },
  };
  const rest = parts.move();
  return {
    ...{ complaints, page },
    async setColors(colors) {
      const own = await call('browsingContext.getTree', { 'moz:scope': 'chrome' });
      await evaluate(
        { context: own.contexts[0].context },
        `Services.prefs.setIntPref(
          'layout.css.prefers-color-scheme.content-override', ${colors === 'dark' ? 0 : 1})`,
      );
      await page.run(untilTrue(`matchMedia('(prefers-color-scheme: ${colors})').matches`));
    },
    async killPage() {
      const processes = descendants(browser.pid as number, / tab$/);
      if (processes.length === 0) throw new Error('Firefox has no process of a page');
      for (const id of processes) process.kill(id, 'SIGKILL');
      ({ context } = await call('browsingContext.create', { type: 'tab' }));
    },
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  };
}

/** Opens a connection for commands, and notes errors of pages. */
async function connect(address: string) {
  const socket = new WebSocket(address);
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = reject;
  });
  const complaints: string[] = [];
  const pending = new Map<number, PromiseWithResolvers<Json>>();
  socket.onmessage = ({ data }) => {
    const { id, type, result, message, params } = JSON.parse(data as string);
    if (type === 'event' && params.level === 'error') complaints.push(params.text);
    if (type === 'success') pending.get(id)?.resolve(result);
    else if (type === 'error') pending.get(id)?.reject(new Error(message));
  };
  let commands = 0;
  const call = async (method: string, params: object): Promise<Json> => {
    commands += 1;
    const answer = Promise.withResolvers<Json>();
    pending.set(commands, answer);
    socket.send(JSON.stringify({ id: commands, method, params }));
    return await answer.promise;
  };
  const evaluate = async (target: object, expression: string): Promise<Json> => {
    const { result, exceptionDetails } = await call('script.evaluate', {
      ...{ expression, target, awaitPromise: true },
    });
    if (exceptionDetails !== undefined) throw new Error(exceptionDetails.text);
    return result.value;
  };
  return { call, evaluate, complaints };
}

/** Returns the IDs of a process's descendants whose command line matches. */
function descendants(pid: number, pattern: RegExp): number[] {
  const list = execFileSync('ps', ['-eo', 'pid=,ppid=,args=', 'ww'], { encoding: 'utf8' });
  const all = list.split('\n').flatMap((line) => {
    const [, id, parent, args = ''] = /^ *(\d+) +(\d+) (.*)$/.exec(line) ?? [];
    return id === undefined ? [] : [{ id: Number(id), parent: Number(parent), args }];
  });
  const family = new Set([pid]);
  // A forked process may have a lower ID than its parent: until no more are found.
  for (let size = 0; size !== family.size; ) {
    size = family.size;
    for (const { id, parent } of all) if (family.has(parent)) family.add(id);
  }
  return all.flatMap(({ id, args }) => (family.has(id) && pattern.test(args) ? [id] : []));
}
