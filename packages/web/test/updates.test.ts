/** Decision 0045: a new version of the messenger in all tabs of a person, in Chromium, from a host that changes its files. */
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Elsewhere, serveElsewhere } from './elsewhere.ts';
import { beginAccount, builtMessenger, type Office, openOffice } from './office.ts';
import { hasChromium, openBrowser, visit } from './support.ts';

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

describe.skipIf(!hasChromium)('a new version', () => {
  let office: Office;
  let host: Elsewhere;
  let browser: Browser;
  let context: BrowserContext;
  /** The tab of the first visit. */
  let first: Page;

  beforeAll(async () => {
    office = await openOffice();
    host = await serveElsewhere(await builtMessenger(), await office.config());
    browser = await openBrowser(office.origin);
    ({ page: first } = await visit(browser, host.url));
    context = first.context();
    await beginAccount(first);
    await first.evaluate(`new Promise((done) => {
      const { serviceWorker } = navigator;
      if (serviceWorker.controller !== null) done();
      serviceWorker.addEventListener('controllerchange', () => done());
    })`);
  });
  afterAll(async () => {
    await browser?.close();
    await host?.[Symbol.asyncDispose]();
    await office?.[Symbol.asyncDispose]();
  });

  let versions = 0;

  /** Has the host serve another version, and a tab find it. */
  async function release(page: Page): Promise<void> {
    versions += 1;
    host.change('/sw.js', (script) => `${script}\n// Another version: ${versions}`);
    await page.evaluate(
      'navigator.serviceWorker.getRegistration().then((found) => found.update())',
    );
    await page.getByText('A new version is ready').waitFor();
  }

  const mark = (page: Page) => page.evaluate('globalThis.isOld = true; 1');
  const isNew = (page: Page) => page.evaluate('globalThis.isOld === undefined').catch(() => false);

  test('all tabs are loaded again: that of the first visit, and one that was loaded past the worker', async () => {
    const past = await context.newPage();
    await past.goto(host.url);
    const devTools = await context.newCDPSession(past);
    const loaded = past.waitForEvent('load');
    await devTools.send('Page.reload', { ignoreCache: true });
    await loaded;
    await past.locator('.entry').first().waitFor();
    expect(await past.evaluate('navigator.serviceWorker.controller')).toBe(null);
    await mark(first);
    await mark(past);
    await release(past);
    await button(past, 'Use it').click();
    for (const page of [past, first]) await expect.poll(() => isNew(page)).toBe(true);
    await past.locator('.entry').first().waitFor();
    await past.close();
  });

  test('a tab in which something is attached says so and waits for the person', async () => {
    const page = await context.newPage();
    await page.goto(host.url);
    await page.locator('.entry').filter({ hasText: 'Notes to myself' }).click();
    const [name, mimeType, buffer] = ['a.txt', 'text/plain', Buffer.from('a')];
    await page.locator('input[type=file]').setInputFiles({ name, mimeType, buffer });
    await page.getByText('a.txt').waitFor();
    for (const each of [page, first]) await mark(each);
    await release(first);
    await button(first, 'Use it').click();
    await expect.poll(() => isNew(first)).toBe(true);
    await page.getByText('Send what you are writing').waitFor();
    expect(await isNew(page)).toBe(false);
    await button(page, 'Use it').click();
    await expect.poll(() => isNew(page)).toBe(true);
    await page.close();
  });

  test('a tab with an empty field is loaded again although another tab stored a draft', async () => {
    const [one, two] = [await context.newPage(), await context.newPage()];
    for (const page of [one, two]) {
      await page.goto(host.url);
      await page.locator('.entry').filter({ hasText: 'Notes to myself' }).click();
      await page.getByLabel('Write a message').waitFor();
    }
    await two.getByLabel('Write a message').fill('of the other tab');
    for (const page of [one, two]) await mark(page);
    await release(first);
    await button(first, 'Use it').click();
    for (const page of [one, two]) await expect.poll(() => isNew(page)).toBe(true);
    await two.getByLabel('Write a message').fill('');
    await one.close();
    await two.close();
  });

  test('a page that stays open asks for one when it is shown again, at most every few hours', async () => {
    const page = await context.newPage();
    await page.clock.install();
    await page.goto(host.url);
    await page.locator('.entry').first().waitFor();
    await page.evaluate('navigator.serviceWorker.ready');
    await page.evaluate(`globalThis.asked = 0;
      ServiceWorkerRegistration.prototype.update = async () => { globalThis.asked += 1; };`);
    const askedWhenShown = async (hours: number) => {
      await page.clock.setSystemTime(Date.now() + hours * 3_600_000);
      await page.evaluate(`document.dispatchEvent(new Event('visibilitychange')); 1`);
      return await page.evaluate('globalThis.asked');
    };
    expect(await askedWhenShown(0)).toBe(0);
    expect(await askedWhenShown(5)).toBe(1);
    expect(await askedWhenShown(6)).toBe(1);
    expect(await askedWhenShown(10)).toBe(2);
    await page.close();
  });
});
