/**
 * What Firefox does to a store: a page that is killed in the middle of a write, and a device without
 * space. Those of Chromium are in indexed-db-store.test.ts; WebKit's driver leaves a session whose page
 * was killed, and has no setting for space.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { relayWithClients } from '../support/relay-with-clients.ts';
import { type AppServer, bundleForPage, serveApp } from './support/app-server.ts';
import { isMissing, openFirefoxWith } from './support/engines.ts';

const program = `
import { IndexedDbStore } from './src/web/index.ts';
Object.assign(globalThis, { IndexedDbStore });`;

const world = relayWithClients();
let app: AppServer;
beforeAll(async () => {
  const tls = join(world.folder, 'relay', 'tls');
  const page = await bundleForPage(program);
  app = await serveApp({ page }, { tls, relay: 'https://127.0.0.1:1' });
});
afterAll(() => app[Symbol.asyncDispose]());

const open = `IndexedDbStore.open('store').then((opened) => { globalThis.store = opened })`;
const rows = (collection: string) => `store.read((tx) => tx.list('${collection}'))`;

test.skipIf(isMissing('Firefox'))(
  'a page of Firefox killed in the middle of a write has written nothing of it, and all before it',
  async () => {
    await using browser = await openFirefoxWith({});
    const { page } = browser;
    await page.open(app.url);
    await page.run(open);
    await page.run("store.write((tx) => tx.put('before', 'k', 'v'))");
    await page.run(`new Promise((halfWay) => store.write(async (tx) => {
      for (let row = 0; row < 100; row += 1) await tx.put('rows', String(row), 'text');
      for (;;) { await tx.get('rows', '99'); halfWay() }
    }).catch(() => undefined))`);
    await browser.killPage();
    await page.open(app.url);
    await page.run(open);
    expect(await page.run(rows('before'))).toEqual([['k', 'v']]);
    expect(await page.run(rows('rows'))).toEqual([]);
  },
  120_000,
);

test.skipIf(isMissing('Firefox'))(
  'without space in Firefox a write fails with an error that names the cure; what is stored stays',
  async () => {
    // KiB that all sites have together.
    const space = { 'dom.quotaManager.temporaryStorage.fixedLimit': 2_000 };
    await using browser = await openFirefoxWith(space);
    const { page } = browser;
    await page.open(app.url);
    await page.run(open);
    await page.run("store.write((tx) => tx.put('a', 'k', 'kept'))");
    // Bytes by chance: an engine may compress what it stores.
    await page.run(
      "globalThis.noise = () => [...crypto.getRandomValues(new Uint8Array(30_000))].join(' '), 0",
    );
    const large = `store.write(async (tx) => {
      await tx.put('a', 'k', 'changed');
      for (let row = 0; row < 50; row += 1) await tx.put('a', 'large' + row, noise());
    })`;
    // Firefox treats the transaction after one without space in its own way.
    for (let write = 0; write < 2; write += 1) {
      await expect(page.run(large)).rejects.toMatchObject({
        code: 'store_full',
        message: expect.stringContaining('free space'),
      });
    }
    expect(await page.run(rows('a'))).toEqual([['k', 'kept']]);
    await page.run("store.write((tx) => tx.put('a', 'k', 'changed'))");
    expect(await page.run(rows('a'))).toEqual([['k', 'changed']]);
  },
  120_000,
);
