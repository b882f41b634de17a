/** What people do with the messenger, in Chromium, on a real relay. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Relay } from '@posthouse/relay';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildMessenger } from '../build.ts';
import { hasChromium, openBrowser, type Visitor, visit } from './support.ts';

const folder = mkdtempSync(join(tmpdir(), 'messenger-'));
let relay: Relay;
let browser: Browser;
let url: string;
beforeAll(async () => {
  if (!hasChromium) return;
  await buildMessenger(join(folder, 'built'));
  relay = await Relay.start({
    ...{ dev: true, data: join(folder, 'relay'), listen: '127.0.0.1:0', log: 'silent' },
    ...{ name: 'The post office', web: { folder: join(folder, 'built') } },
  });
  const [endpoint = ''] = relay.https;
  url = new URL('/app/', endpoint).href;
  browser = await openBrowser(new URL(endpoint).origin);
});
afterAll(async () => {
  await browser?.close();
  await relay?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const entry = (page: Page, text: string) => page.locator('.entry').filter({ hasText: text });
const shown = (page: Page, text: string) => page.locator('.messages').getByText(text).first();

/** Keeps a picture of a screen, if the run asks for them. */
async function keep(page: Page, name: string): Promise<void> {
  const { MESSENGER_PICTURES: pictures } = process.env;
  if (pictures !== undefined) await page.screenshot({ path: join(pictures, `${name}.png`) });
}

async function write(page: Page, label: string, text: string): Promise<void> {
  await page.getByLabel(label).fill(text);
  await page.getByLabel(label).press('Enter');
}

describe.skipIf(!hasChromium)('two people and a relay', () => {
  let ann: Visitor;
  let bob: Visitor;
  let backup: string;

  test('a new person has an account, and is asked for a backup before anything else', async () => {
    ann = await visit(browser, url);
    const { page } = ann;
    await button(page, 'New account').waitFor();
    await keep(page, 'welcome');
    await button(page, 'New account').click();
    await button(page, 'Save a backup').click();
    for (const label of ['Password', 'Password again']) {
      await page.getByLabel(label, { exact: true }).fill('short');
    }
    await button(page, 'Save the file').click();
    await page.getByRole('alert').getByText('At least ten characters').waitFor();
    await page.getByLabel('Password', { exact: true }).fill('four words by chance');
    await button(page, 'Save the file').click();
    await page.getByText('The two are not the same').waitFor();
    await page.getByLabel('Password again').fill('four words by chance');
    const downloading = page.waitForEvent('download');
    await button(page, 'Save the file').click();
    backup = await (await downloading).path();
    await keep(page, 'backup');
    await button(page, 'I have the file').click();
    await page.getByText('There is no backup').waitFor({ state: 'detached' });
  });

  test('an invite of hers, opened in another browser, makes a request that she accepts', async () => {
    await button(ann.page, 'Add a person').click();
    await button(ann.page, 'Make an invite').click();
    const link = await ann.page.getByLabel('Write to me').inputValue();
    expect(link.startsWith(`${url}#invite=`)).toBe(true);
    bob = await visit(browser, link, {
      ...{ locale: 'de-DE', colorScheme: 'dark', viewport: { width: 320, height: 640 } },
    });
    const { page } = bob;
    await button(page, 'Neues Konto').click();
    await page.getByText('Eine Einladung von').waitFor();
    // The invite is not in the address any more, and so not in the history.
    expect(page.url()).not.toContain('invite');
    await page.getByLabel('Name auf deinen Geräten').fill('Ann');
    await page.getByLabel('Wer du bist').fill('Bob <b>');
    await keep(page, 'ask');
    await button(page, 'Anfragen').click();
    await ann.page.getByText('asks to write to you').waitFor();
    await keep(ann.page, 'request');
    await ann.page.getByLabel('Name on your devices').fill('Bob <b>');
    await button(ann.page, 'Accept').click();
    await entry(ann.page, 'Bob <b>').waitFor();
  });

  test('they write to each other; each message has its status, and nothing of a text is run', async () => {
    await entry(ann.page, 'Bob <b>').click();
    await write(ann.page, 'Write a message', '<img src=x onerror=alert(1)> hello');
    await ann.page.getByText('at their relay').first().waitFor();
    await entry(bob.page, 'Ann').click();
    await shown(bob.page, '<img src=x onerror=alert(1)> hello').waitFor();
    await bob.page.getByLabel('Nachricht schreiben').fill('Hallo Ann');
    await button(bob.page, 'Senden').click();
    await shown(ann.page, 'Hallo Ann').waitFor();
    await button(ann.page, 'Reply').last().click();
    await write(ann.page, 'Write a message', 'an answer');
    await bob.page.locator('.answered').getByText('Hallo Ann').waitFor();
    await keep(ann.page, 'conversation');
    await keep(bob.page, 'conversation-dark-narrow');
    // No account ID is in an address.
    for (const { page } of [ann, bob]) expect(page.url()).toBe(`${url}#/chat`);
  });

  test('what is open is read; what is not is counted', async () => {
    await ann.page.keyboard.press('Escape');
    await bob.page.getByLabel('Nachricht schreiben').fill('noch etwas');
    await bob.page.keyboard.press('Enter');
    await entry(ann.page, 'Bob').getByText('1 unread message', { exact: true }).waitFor();
    await expect.poll(() => ann.page.title()).toBe('(1) The post office');
    await entry(ann.page, 'Bob').click();
    await expect.poll(() => ann.page.title()).toBe('The post office');
  });

  test('offline the app starts, shows what it has, takes messages, and sends them later', async () => {
    const { page } = ann;
    await page.evaluate('navigator.serviceWorker.ready.then(() => 0)');
    await page.getByLabel('Write a message').fill('a draft');
    await page.context().setOffline(true);
    await page.reload();
    await page.getByText('Not connected').waitFor();
    await shown(page, 'Hallo Ann').waitFor();
    expect(await page.getByLabel('Write a message').inputValue()).toBe('a draft');
    await page.getByLabel('Write a message').press('Enter');
    await page.locator('.own').getByText('waiting').waitFor();
    await keep(page, 'offline');
    await page.context().setOffline(false);
    await shown(bob.page, 'a draft').waitFor();
    await page.locator('.own').getByText('waiting').waitFor({ state: 'detached' });
  });

  test('nothing of an account is in what the service worker keeps', async () => {
    const kept = (await ann.page.evaluate(`(async () => {
      const urls = [];
      for (const name of await caches.keys())
        for (const { url } of await (await caches.open(name)).keys()) urls.push(new URL(url).pathname);
      return urls;
    })()`)) as string[];
    expect(kept.length).toBeGreaterThan(5);
    for (const path of kept) expect(path).toMatch(/^\/app\/(?:[\w-]+\.\w+)?$/);
    expect(kept).not.toContain('/app/config.json');
  });

  test('the backup is her account on another device; a wrong password opens nothing', async () => {
    const { page, complaints } = await visit(browser, url);
    await page.getByText('I have a backup').click();
    await page.getByLabel('Backup file').setInputFiles(backup);
    await page.getByLabel('Password').fill('four words by mistake');
    await button(page, 'Open').click();
    await page.getByText('The password does not open this file').waitFor();
    await page.getByLabel('Password').fill('four words by chance');
    await button(page, 'Open').click();
    await entry(page, 'Notes to myself').waitFor();
    await button(page, 'Settings').click();
    const id = await page.locator('dd.id').textContent();
    await button(ann.page, 'Settings').click();
    expect(id).toBe(await ann.page.locator('dd.id').textContent());
    await keep(ann.page, 'settings');
    expect(complaints).toEqual([]);
  });

  test('no page complained of anything', () => {
    expect([...ann.complaints, ...bob.complaints]).toEqual([]);
  });
});
