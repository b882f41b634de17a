/**
 * What each engine gives the client: Web Crypto that decides as Node does, and IndexedDbStore, with
 * the store contract and what only browsers do to a store.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { PageReport } from '../../../protocol/test/browser/page-vitest.ts';
import { ownVectorTexts } from '../../../protocol/test/vectors/files.ts';
import { relayWithClients } from '../support/relay-with-clients.ts';
import { type AppServer, bundleForPage, serveApp } from './support/app-server.ts';
import { type ChromiumBrowser, pageOf } from './support/chromium.ts';
import type { Page } from './support/engine.ts';
import { engineNames, isMissing, openBrowser } from './support/engines.ts';

const program = `
import { runRegistered } from '../protocol/test/browser/page-vitest.ts';
import { agreementTests } from '../protocol/test/web/agreement.ts';
import { storeTests } from './test/web/support/store-tests.ts';
import { IndexedDbStore, storageStatus } from './src/web/index.ts';
const vectors = ${JSON.stringify([...ownVectorTexts()])};
agreementTests(vectors);
storeTests();
// Counts what Web Crypto verifies, and what it refuses to compute.
globalThis.platform = {};
for (const name of ['verify', 'deriveBits']) {
  const original = crypto.subtle[name];
  crypto.subtle[name] = async (...input) => {
    const result = await original.apply(crypto.subtle, input);
    const algorithm = input[0].name;
    platform[algorithm] = (platform[algorithm] ?? 0) + 1;
    return result;
  };
}
Object.assign(globalThis, { runRegistered, IndexedDbStore, storageStatus });`;

/**
 * What Web Crypto of an engine computes. WebKit (on libgcrypt) decides otherwise than chapter 01 on
 * Ed25519 keys with a part of small order: it is asked for samples only.
 */
const onPlatform = {
  Chromium: ['ECDSA', 'Ed25519', 'X25519'],
  Firefox: ['ECDSA', 'Ed25519', 'X25519'],
  WebKit: ['ECDSA', 'X25519'],
};

const world = relayWithClients();
let app: AppServer;
beforeAll(async () => {
  const tls = join(world.folder, 'relay', 'tls');
  app = await serveApp(
    { page: await bundleForPage(program) },
    { tls, relay: 'https://127.0.0.1:1' },
  );
});
afterAll(() => app[Symbol.asyncDispose]());

describe.each(engineNames)('IndexedDbStore in %s', (name) => {
  test.skipIf(isMissing(name))(
    'decides on keys and signatures as Node does (01 §5), keeps the contract of stores, and writes whole',
    async () => {
      await using browser = await openBrowser(name);
      await browser.page.open(app.url);
      const report = await browser.page.run<PageReport>('runRegistered()');
      expect(report.failed).toEqual([]);
      expect(report.passed).toBeGreaterThan(50);
      const computed = await browser.page.run<Record<string, number>>('platform');
      const often = Object.keys(computed).filter((algorithm) => (computed[algorithm] ?? 0) > 20);
      expect(often.toSorted()).toEqual(onPlatform[name]);
      expect(await browser.page.run('complaints')).toEqual([]);
      await expectWholeWrites(browser.page);
      const status = await browser.page.run('storageStatus()');
      const numbers =
        name === 'WebKit' ? {} : { usage: expect.any(Number), quota: expect.any(Number) };
      expect(status).toEqual({ persisted: false, ...numbers });
    },
  );
});

const openStore = (name: string) =>
  `IndexedDbStore.open('${name}').then((opened) => { globalThis.store = opened })`;

/** A write that does not end, of a hundred rows; resolves when they are put. */
const endlessWrite = `new Promise((halfWay) => store.write(async (tx) => {
  for (let row = 0; row < 100; row += 1) await tx.put('rows', String(row), 'text');
  for (;;) { await tx.get('rows', '99'); halfWay() }
}).catch(() => undefined))`;

/** Leaves a page in the middle of a write: it has written nothing of it, and all before it. */
async function expectWholeWrites(page: Page): Promise<void> {
  await page.run(openStore('left'));
  await page.run("store.write((tx) => tx.put('before', 'k', 'v'))");
  await page.run(endlessWrite);
  await page.open(app.url);
  await page.run(openStore('left'));
  const rows = (collection: string) => page.run(`store.read((tx) => tx.list('${collection}'))`);
  expect(await rows('before')).toEqual([['k', 'v']]);
  expect(await rows('rows')).toEqual([]);
}

describe.skipIf(isMissing('Chromium'))('IndexedDbStore, driven from outside', () => {
  let browser: ChromiumBrowser;
  beforeAll(async () => {
    browser = await openBrowser('Chromium');
  });
  afterAll(() => browser[Symbol.asyncDispose]());

  test('a page killed in the middle of a write has written nothing of it, and all before it', async () => {
    const tab = await browser.tab.context().newPage();
    const page = pageOf(tab);
    await page.open(app.url);
    await page.run(openStore('killed'));
    await page.run("store.write((tx) => tx.put('before', 'k', 'v'))");
    await page.run(endlessWrite);
    const devTools = await tab.context().newCDPSession(tab);
    const crashed = new Promise((resolve) => tab.once('crash', resolve));
    devTools.send('Page.crash').catch(() => undefined);
    await crashed;
    await browser.page.open(app.url);
    await browser.page.run(openStore('killed'));
    const rows = (collection: string) =>
      browser.page.run(`store.read((tx) => tx.list('${collection}'))`);
    expect(await rows('before')).toEqual([['k', 'v']]);
    expect(await rows('rows')).toEqual([]);
    await tab.close();
  });

  test('without space a write fails with an error that names the cure; what is stored stays', async () => {
    const opened = browser.tab.context().browser();
    const context = await opened?.newContext({ ignoreHTTPSErrors: true });
    const tab = await context?.newPage();
    if (tab === undefined) throw new Error('no page');
    const page = pageOf(tab);
    const devTools = await tab.context().newCDPSession(tab);
    const limit = (quotaSize?: number) =>
      devTools.send('Storage.overrideQuotaForOrigin', {
        origin: new URL(app.url).origin,
        ...(quotaSize !== undefined && { quotaSize }),
      });
    // Before the first write, because the engine remembers for some seconds how much is left.
    await limit(1_000_000);
    await page.open(app.url);
    await page.run(openStore('full'));
    await page.run("store.write((tx) => tx.put('a', 'k', 'kept'))");
    // Newer versions of Chromium compress what is stored.
    const noise = `Array.from(crypto.getRandomValues(new Uint16Array(30_000)), (unit) =>
      String.fromCharCode(0x4e00 + (unit % 20_000))).join('')`;
    const large = `store.write(async (tx) => {
      await tx.put('a', 'k', 'changed');
      for (let row = 0; row < 40; row += 1) await tx.put('a', 'large' + row, ${noise});
    })`;
    await expect(page.run(large)).rejects.toMatchObject({
      code: 'store_full',
      message: expect.stringContaining('free space'),
    });
    expect(await page.run("store.read((tx) => tx.list('a'))")).toEqual([['k', 'kept']]);
    await limit();
    await page.run(large);
    expect(await page.run("store.read((tx) => tx.get('a', 'k'))")).toBe('changed');
    await context?.close();
  });
});
