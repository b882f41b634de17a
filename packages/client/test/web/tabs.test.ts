/** Tabs of one browser with one store, of which the connected one is closed or crashes (decision 0034). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page as Tab } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { patience } from '../../../relay/test/support/patience.ts';
import { network, relayWithClients } from '../support/relay-with-clients.ts';
import { type AppServer, bundleForPage, serveApp } from './support/app-server.ts';
import { pageOf } from './support/chromium.ts';
import { isMissing, openBrowser } from './support/engines.ts';

const pageProgram = `
import { openAccount } from './test/web/support/app.ts';
globalThis.texts = [];
globalThis.follow = () => void account.subscribe((event) => {
  if (event.kind === 'message') texts.push(event.message.body?.text);
});
globalThis.open = async (given) => (globalThis.account = await openAccount(given)).id;`;

const world = relayWithClients();
let app: AppServer;
let given = '';
beforeAll(async () => {
  const folder = join(world.folder, 'relay');
  const registry = JSON.parse(readFileSync(join(folder, 'registry.json'), 'utf8'));
  app = await serveApp(
    { page: await bundleForPage(pageProgram) },
    { tls: join(folder, 'tls'), relay: new URL(registry.relays[0].endpoint).origin },
  );
  given = JSON.stringify({ context: network.context, registry });
});
afterAll(() => app[Symbol.asyncDispose]());

async function crash(tab: Tab): Promise<void> {
  const devTools = await tab.context().newCDPSession(tab);
  const crashed = new Promise((resolve) => tab.once('crash', resolve));
  devTools.send('Page.crash').catch(() => undefined);
  await crashed;
}

const numbers = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => String(from + index));

test.skipIf(isMissing('Chromium'))(
  'each event reaches each tab once, when the connected tab is closed and when it crashes',
  async () => {
    const bob = await world.person();
    await using browser = await openBrowser('Chromium');
    const context = browser.tab.context();
    const openTab = async () => {
      const tab = await context.newPage();
      const page = pageOf(tab);
      await page.open(app.url);
      const id = await page.run<string>(`open(${given})`);
      return { tab, page, id, texts: () => page.run<string[]>('texts') };
    };
    const first = await openTab();
    await bob.contacts.join(
      await first.page.run<string>(`account.contacts.invite().then((i) => i.text)`),
    );
    await first.page.run(`account.sync().then(() => account.contacts.approve('${bob.id}'))`);
    await bob.sync();
    await first.page.run('follow()');
    const second = await openTab();
    await second.page.run('follow()');
    const write = async (from: number, to: number) => {
      for (const text of numbers(from, to)) await bob.messages.send(first.id, { text });
    };
    await write(0, 10);
    for (const { texts } of [first, second]) {
      await vi.waitFor(async () => expect(await texts()).toEqual(numbers(0, 10)), patience);
    }
    const closing = first.tab.close();
    await write(10, 15);
    await closing;
    await vi.waitFor(async () => expect(await second.texts()).toEqual(numbers(0, 15)), patience);
    const third = await openTab();
    await third.page.run('follow()');
    await write(15, 18);
    await vi.waitFor(async () => expect((await third.texts()).at(-1)).toBe('17'), patience);
    await vi.waitFor(async () => expect(await second.texts()).toEqual(numbers(0, 18)), patience);
    const crashing = crash(second.tab);
    await write(18, 25);
    await crashing;
    await vi.waitFor(async () => expect((await third.texts()).at(-1)).toBe('24'), patience);
    const read = await third.texts();
    expect(read).toEqual(numbers(Number(read[0]), 25));
    const stored = await third.page.run<{ body: { text: string } }[]>(`account.messages.list()`);
    expect(stored.map(({ body }) => body.text)).toEqual(numbers(0, 25));
  },
  180_000,
);
