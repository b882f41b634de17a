/**
 * The client in a worker of a page, in each engine: what a relay sends is verified there, and the
 * page stays free. Page and worker have the same store.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { patience } from '../../../relay/test/support/patience.ts';
import { network, relayWithClients } from '../support/relay-with-clients.ts';
import { type AppServer, bundleForPage, serveApp } from './support/app-server.ts';
import { pageOf } from './support/chromium.ts';
import type { Page } from './support/engine.ts';
import { engineNames, isMissing, openBrowser } from './support/engines.ts';

const pageProgram = `
import { isClientError } from './src/index.ts';
import { clientInWorker, storageStatus } from './src/web/index.ts';
import { followMessages, openAccount } from './test/web/support/app.ts';
// Firefox has none before version 148.
const rules = { createScriptURL: () => 'worker.js' };
const policy = globalThis.trustedTypes?.createPolicy('app', rules) ?? rules;
/** What the page's own thread does for the client; the browser's clock says nothing of a busy machine. */
globalThis.own = { replies: 0, largest: 0, work: [] };
const noted = (owner, names) => {
  for (const name of names) {
    const original = owner[name];
    owner[name] = function (...given) {
      own.work.push(name);
      return original.apply(this, given);
    };
  }
};
noted(SubtleCrypto.prototype, Object.getOwnPropertyNames(SubtleCrypto.prototype).filter((name) => name !== 'constructor'));
noted(IDBFactory.prototype, ['open']);
for (const name of ['fetch', 'WebSocket', 'BroadcastChannel'])
  globalThis[name] = new Proxy(globalThis[name], {
    apply: (target, owner, given) => (own.work.push(name), Reflect.apply(target, globalThis, given)),
    construct: (target, given) => (own.work.push(name), Reflect.construct(target, given)),
  });
const openWorker = async ({ context, registry }) => {
  const worker = new Worker(policy.createScriptURL(''));
  worker.addEventListener('message', ({ data }) => {
    own.replies += 1;
    own.largest = Math.max(own.largest, JSON.stringify(data).length);
  });
  globalThis.client = await clientInWorker(worker, { context, registry, store: 'app' });
  globalThis.ann = await client.account().catch(() => client.setUp());
  return ann.id;
};
const failure = (work) => work().then(
  () => 'no error',
  (error) => ({
    isClients: isClientError(error),
    isError: error instanceof Error,
    ...{ code: error.code, message: error.message },
  }),
);
/** The texts that arrive in a tab, each time they do. */
const hear = () => {
  globalThis.heard = [];
  globalThis.hearing = ann.subscribe(({ kind, message }) => {
    if (kind === 'message' && message.from !== ann.id) heard.push(message.body.text);
  });
};
Object.assign(globalThis, { failure, followMessages, hear, openAccount, openWorker, storageStatus });`;

const world = relayWithClients();
let app: AppServer;
let given = '';
beforeAll(async () => {
  const folder = join(world.folder, 'relay');
  const registry = JSON.parse(readFileSync(join(folder, 'registry.json'), 'utf8'));
  const scripts = {
    page: await bundleForPage(pageProgram),
    worker: await bundleForPage(`import './src/web/worker/entry.ts';`),
  };
  app = await serveApp(scripts, {
    tls: join(folder, 'tls'),
    relay: new URL(registry.relays[0].endpoint).origin,
  });
  given = JSON.stringify({ context: network.context, registry });
});
afterAll(() => app[Symbol.asyncDispose]());

/** A page whose account is in a worker, and its contact on Node. */
async function inContact(page: Page) {
  const bob = await world.person();
  await page.open(app.url);
  const annId = await page.run<string>(`openWorker(${given})`);
  await bob.contacts.join(await page.run('ann.contacts.invite().then(({ text }) => text)'));
  await page.run('ann.sync()');
  await page.run(`ann.contacts.approve('${bob.id}')`);
  await bob.sync();
  return { bob, annId };
}

describe.each(engineNames)('a client in a worker in %s', (name) => {
  test.skipIf(isMissing(name))(
    'has the methods, events, errors and state of an account',
    async () => {
      await using browser = await openBrowser(name);
      const { page } = browser;
      const { bob, annId } = await inContact(page);

      await page.run(`globalThis.following = followMessages(ann, 2), 0`);
      for (const text of ['one', 'two']) await bob.messages.send(annId, { text });
      expect(await page.run('following')).toEqual(['one', 'two']);
      const sent = await page.run(`ann.messages.send('${bob.id}', { text: 'three' })`);
      expect(sent).toMatchObject({ status: 'target_accepted', body: { text: 'three' } });
      // The page's own client reads the same store.
      const own = `openAccount(${given}).then((account) => account.messages.list())`;
      expect(await page.run(own)).toEqual(await page.run('ann.messages.list()'));

      // A loop that is left did not finish its event: the next reader gets it again.
      await bob.messages.send(annId, { text: 'four' });
      const first = `(async () => {
        for await (const { kind, message } of ann.follow())
          if (kind === 'message' && message.from !== ann.id) return message.body.text;
      })()`;
      expect([await page.run(first), await page.run(first)]).toEqual(['four', 'four']);

      await page.run(
        `globalThis.changes = 0, globalThis.end = ann.state.subscribe(() => changes++), 0`,
      );
      await expect
        .poll(() => page.run('ann.state.getSnapshot()?.status'))
        .toMatchObject({ outbox: 0 });
      await page.run('end()');

      const failure = (work: string) => page.run(`failure(async () => ${work})`);
      const invalid = { isClients: true, isError: true, code: 'invalid_input' };
      for (const work of [
        `ann.messages.post('${bob.id}', {})`,
        ...['ann.messages.constructor()', 'ann.messages.none()', 'ann.groups.list(() => 1)'],
      ]) {
        expect(await failure(work)).toMatchObject(invalid);
      }
      const unknown = await failure('ann.channels.get("channel")');
      expect(unknown).toMatchObject({ ...invalid, code: 'unknown_channel' });
      const aborted = `ann.sync({ signal: AbortSignal.abort(new Error('enough')) })`;
      expect(await failure(aborted)).toEqual({
        isClients: false,
        isError: true,
        message: 'enough',
      });
      await page.run('client.close()');
      expect(await page.run('complaints')).toEqual([]);
    },
    120_000,
  );
});

/**
 * Only Chromium tells a page of its long tasks. What the page's thread has to do can be counted in each
 * engine: one small message at a time, which are no task of 50 ms; how long the engine itself takes for
 * one, or the machine, cannot.
 */
describe.each(engineNames)('a page in %s whose client is in a worker', (name) => {
  test.skipIf(isMissing(name))(
    'computes, stores and fetches nothing itself, and gets one small reply at a time',
    async () => {
      await using browser = await openBrowser(name);
      const { page } = browser;
      const { bob, annId } = await inContact(page);
      for (let index = 0; index < 100; index += 1) await bob.messages.post(annId, { text: 'text' });
      await bob.sync();
      const before = await page.run<number>('own.replies');
      await page.run('hear()');
      await expect.poll(() => page.run('heard.length'), patience).toBe(100);
      await page.run('hearing[Symbol.dispose]()');
      const { replies, largest, work } = await page.run<{
        replies: number;
        largest: number;
        work: string[];
      }>('own');
      expect(work).toEqual([]);
      // The worker posts an event when the page asks for the next one.
      expect(replies - before).toBeGreaterThanOrEqual(100);
      expect(replies - before).toBeLessThan(130);
      expect(largest).toBeLessThan(2_000);
    },
    120_000,
  );
});

describe.skipIf(isMissing('Chromium'))('pages in Chromium', () => {
  test('two tabs with a worker each get each event once, whichever is connected', async () => {
    await using browser = await openBrowser('Chromium');
    const { bob, annId } = await inContact(browser.page);
    const tab = await browser.tab.context().newPage();
    const other = pageOf(tab);
    await other.open(app.url);
    expect(await other.run(`openWorker(${given})`)).toBe(annId);
    for (const page of [browser.page, other]) await page.run('hear()');
    const texts = Array.from({ length: 20 }, (_, index) => `message ${index}`);
    for (const text of texts.slice(0, 10)) await bob.messages.send(annId, { text });
    for (const page of [browser.page, other]) {
      await expect.poll(() => page.run('heard')).toEqual(texts.slice(0, 10));
    }
    // The tab that was first may be the one that is connected.
    await browser.page.open('about:blank');
    for (const text of texts.slice(10)) await bob.messages.send(annId, { text });
    await expect.poll(() => other.run('heard')).toEqual(texts);
    await tab.close();
  }, 120_000);

  test('catching up with 1,000 messages after a time offline causes no long task in the page', async () => {
    await using browser = await openBrowser('Chromium');
    const { page } = browser;
    const { bob, annId } = await inContact(page);
    await page.run(`globalThis.long = [], new PerformanceObserver((list) => {
      long.push(...list.getEntries().map(({ duration }) => duration));
    }).observe({ type: 'longtask' })`);
    // A task is also long if the machine has no time for it: then all 1,000 are received once more.
    const counts: number[] = [];
    while (counts.length < 4 && counts.at(-1) !== 0) {
      for (let index = 0; index < 1_000; index += 1) {
        await bob.messages.post(annId, { text: 'text' });
      }
      await bob.sync();
      await page.run('long.length = 0, hear()');
      await expect.poll(() => page.run('heard.length'), patience).toBe(1_000);
      counts.push(await page.run<number>('long.length'));
      await page.run('hearing[Symbol.dispose]()');
    }
    expect(counts.at(-1)).toBe(0);
  }, 240_000);
});
