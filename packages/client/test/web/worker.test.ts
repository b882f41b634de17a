/**
 * The client in a worker of a page, in each engine: what a relay sends is verified there, and the
 * page stays free. Page and worker have the same store.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { network, relayWithClients } from '../support/relay-with-clients.ts';
import { type AppServer, bundleForPage, serveApp } from './support/app-server.ts';
import { engineNames, isMissing, openBrowser } from './support/engines.ts';

const pageProgram = `
import { openAccount } from './test/web/support/app.ts';
const policy = trustedTypes.createPolicy('app', { createScriptURL: () => 'worker.js' });
const worker = new Worker(policy.createScriptURL(''));
globalThis.inWorker = (given) => new Promise((resolve, reject) => {
  worker.onmessage = ({ data }) => ('value' in data ? resolve(data.value) : reject(new Error(data.error)));
  worker.onerror = ({ message }) => reject(new Error(message));
  worker.postMessage(given);
});
Object.assign(globalThis, { openAccount });`;

const workerProgram = `
import { storageStatus } from './src/web/index.ts';
import { followMessages, openAccount } from './test/web/support/app.ts';
let account;
const does = {
  open: async (given) => (account = await openAccount(given)).id,
  invite: async () => (await account.contacts.invite()).text,
  approve: async (other) => (await account.sync(), await account.contacts.approve(other)),
  follow: (count) => followMessages(account, count),
  status: () => storageStatus({ ask: true }),
};
onmessage = async ({ data: [name, given] }) => {
  try {
    postMessage({ value: await does[name](given) });
  } catch (error) {
    postMessage({ error: String(error?.stack) });
  }
};`;

const world = relayWithClients();
let app: AppServer;
let given = '';
beforeAll(async () => {
  const folder = join(world.folder, 'relay');
  const registry = JSON.parse(readFileSync(join(folder, 'registry.json'), 'utf8'));
  const scripts = {
    page: await bundleForPage(pageProgram),
    worker: await bundleForPage(workerProgram),
  };
  app = await serveApp(scripts, {
    tls: join(folder, 'tls'),
    relay: new URL(registry.relays[0].endpoint).origin,
  });
  given = JSON.stringify({ context: network.context, registry });
});
afterAll(() => app[Symbol.asyncDispose]());

describe.each(engineNames)('a worker in %s', (name) => {
  test.skipIf(isMissing(name))(
    'receives messages, and the page reads them',
    async () => {
      const bob = await world.person();
      await using browser = await openBrowser(name);
      const { page } = browser;
      await page.open(app.url);
      const annId = await page.run<string>(`inWorker(['open', ${given}])`);
      await bob.contacts.join(await page.run(`inWorker(['invite'])`));
      await page.run(`inWorker(['approve', '${bob.id}'])`);
      await bob.sync();
      await page.run(`globalThis.following = inWorker(['follow', 2]), 0`);
      for (const text of ['one', 'two']) await bob.messages.send(annId, { text });
      expect(await page.run('following')).toEqual(['one', 'two']);
      const shown = await page.run<{ content: { body: { text: string } } }[]>(
        `openAccount(${given}).then((account) => account.messages.list())`,
      );
      expect(shown.map(({ content }) => content.body.text)).toEqual(['one', 'two']);
      // Only pages may ask for more.
      expect(await page.run(`inWorker(['status'])`)).toMatchObject({ persisted: false });
      expect(await page.run('complaints')).toEqual([]);
    },
    120_000,
  );
});
