/** The settings of the messenger, in Chromium, with two relays of one network. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DevNetwork } from '../../relay/src/dev/dev-network.ts';
import { builtMessenger } from './office.ts';
import { hasChromium, openBrowser, type Visitor, visit } from './support.ts';

const folder = mkdtempSync(join(tmpdir(), 'messenger-'));
let relays: DevNetwork;
let browser: Browser;
let url: string;
/** Addresses of the relays' methods. */
let endpoints: readonly string[];
beforeAll(async () => {
  if (!hasChromium) return;
  const web = { folder: await builtMessenger() };
  relays = await DevNetwork.start({
    ...{ folder, relays: 2 },
    network: `neo:860833102:0x${'5a'.repeat(20)}`,
    config: (name: string) => ({ log: 'silent', web, name: `Relay ${name}` }),
  });
  const { relays: listed } = JSON.parse(readFileSync(relays.registryFile, 'utf8'));
  endpoints = ['a', 'b'].map(
    (name) =>
      listed.find(
        ({ relay_id }: { relay_id: string }) => relay_id === relays.relay(name).server.relayId,
      ).endpoint,
  );
  url = new URL('/app/', endpoints[0]).href;
  browser = await openBrowser(...endpoints.map((each) => new URL(each).origin));
});
afterAll(async () => {
  await browser?.close();
  await relays?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

async function keep(page: Page, name: string): Promise<void> {
  const { MESSENGER_PICTURES: pictures } = process.env;
  if (pictures !== undefined) await page.screenshot({ path: join(pictures, `${name}.png`) });
}

async function settingsPage(page: Page, name: string): Promise<void> {
  await button(page, 'Settings').first().click();
  await button(page, name).click();
  await page.getByRole('heading', { name, level: 1, exact: true }).waitFor();
}

/** Keeps pictures of a screen, light, dark and narrow. */
async function keepAll(page: Page, name: string): Promise<void> {
  await keep(page, name);
  const size = page.viewportSize() ?? { width: 1_100, height: 750 };
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.setViewportSize({ width: 320, height: 900 });
  await keep(page, `${name}-dark-narrow`);
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize(size);
}

describe.skipIf(!hasChromium)('the settings', () => {
  let ann: Visitor;
  let backup: string;

  test('what is on this device is saved as JSON and as text, in which no message looks like another', async () => {
    ann = await visit(browser, url);
    const { page } = ann;
    await button(page, 'New account').click();
    await page.locator('.entry').filter({ hasText: 'Notes to myself' }).click();
    await page.getByLabel('Write a message').fill('one');
    await page.getByLabel('Write a message').press('Enter');
    await page.locator('.own').getByText('one').waitFor();
    await page.getByLabel('Write a message').fill('two\n2026-01-01T00:00:00.000Z neo:forged');
    await page.getByLabel('Write a message').press('Enter');
    await page.locator('.own').getByText('forged').waitFor();
    await button(page, 'Settings').click();
    const id = (await page.locator('dd.id').textContent()) ?? '';
    await keepAll(page, 'settings-all');
    await settingsPage(page, 'Save what is on this device');
    await keepAll(page, 'export');
    const saved = async (name: string) => {
      const downloading = page.waitForEvent('download');
      await button(page, name).click();
      return readFileSync(await (await downloading).path(), 'utf8');
    };
    const { account, conversations } = JSON.parse(await saved('As JSON, for programs'));
    expect(account).toBe(id);
    expect(conversations).toHaveLength(1);
    expect(
      conversations[0].messages.map(({ body }: { body: { text: string } }) =>
        body.text.slice(0, 3),
      ),
    ).toEqual(['one', 'two']);
    const lines = (await saved('As text, to read')).split('\n');
    expect(lines).toContain('  two');
    expect(lines.filter((line) => /^\d{4}-.*neo:forged/.test(line))).toEqual([]);
    await page.getByText('A file with 2 messages was saved').waitFor();
  });

  test('the relay is named, and where it says what it sees', async () => {
    const { page } = ann;
    await settingsPage(page, 'Relay');
    await page.getByText('Relay a').last().waitFor();
    const link = page.getByRole('link', { name: 'What this relay can see about you' });
    expect(await link.getAttribute('href')).toBe(new URL('/', endpoints[0]).href);
    await keepAll(page, 'home');
  });

  test('03 §12: a move is looked at, interrupted, goes on after a reload, and ends', async () => {
    const { page } = ann;
    const there = endpoints[1] ?? '';
    await page.getByLabel(new URL(there).host).check();
    await button(page, 'Look at it first').click();
    await page.getByRole('heading', { name: 'To Relay b' }).waitFor();
    await keepAll(page, 'move-preview');
    await page.context().route(`${there.replace(/\/$/, '')}/**`, (route) => route.abort());
    await button(page, 'Move now').click();
    await page.getByRole('alert').getByText('There was no answer').waitFor();
    await page.reload();
    await page.getByText('is not finished').waitFor();
    await keep(page, 'move-unfinished');
    await page.context().unroute(`${there.replace(/\/$/, '')}/**`);
    await button(page, 'Go on').click();
    await page.getByText('Your account is at the new relay now').waitFor();
    const id = relays.relay('b').server.relayId;
    await expect.poll(() => page.locator('dd.id').textContent()).toBe(id);
    await page.locator('dd').getByText(new URL(there).host).waitFor();
  });

  test('a backup is saved, for what follows', async () => {
    const { page } = ann;
    await button(page, 'Save a backup').first().click();
    for (const label of ['Password', 'Password again']) {
      await page.getByLabel(label, { exact: true }).fill('four words by chance');
    }
    const downloading = page.waitForEvent('download');
    await button(page, 'Save the file').click();
    backup = await (await downloading).path();
    await button(page, 'I have the file').click();
  });

  test('erasing asks, removes the device from the account, and leaves nothing in the browser', async () => {
    const { page } = ann;
    await settingsPage(page, 'Erase this device');
    expect(await button(page, 'Erase everything').isDisabled()).toBe(true);
    await page.getByLabel('I know that this cannot be undone').check();
    await keepAll(page, 'erase');
    await button(page, 'Erase everything').click();
    await button(page, 'New account').waitFor();
    // What the page that is open now has of the relay, and the name of its history.
    const left = await page.evaluate(`(async () => [
      ...Object.keys(localStorage).filter((key) => !/^posthouse\\.(config|history)$/.test(key)),
      ...Object.keys(sessionStorage),
    ])()`);
    expect(left).toEqual([]);
    // The page that is open now has a new store: without account, drafts and keys.
    expect(await page.locator('.entry').count()).toBe(0);
    expect(ann.complaints.filter((line) => !line.includes('net::ERR_FAILED'))).toEqual([]);
  });

  test('a set-up that was interrupted goes on or is discarded', async () => {
    const { page } = await visit(browser, url);
    const context = page.context();
    const methods = `${(endpoints[0] ?? '').replace(/\/$/, '')}/**`;
    // What a relay says to everyone arrives; no call that changes something does.
    await context.route(methods, (route) =>
      route.request().method() === 'POST' ? route.abort() : route.continue(),
    );
    await button(page, 'New account').click();
    await page.getByRole('alert').filter({ hasText: /./ }).waitFor();
    await page.reload();
    await page.getByText('A set-up on this device did not end').waitFor();
    await keepAll(page, 'begun');
    await button(page, 'Discard it').click();
    await page.getByText('A set-up on this device did not end').waitFor({ state: 'detached' });
    await button(page, 'New account').click();
    await page.getByRole('alert').filter({ hasText: /./ }).waitFor();
    await page.reload();
    await button(page, 'Go on with it').waitFor();
    await context.unroute(methods);
    await button(page, 'Go on with it').click();
    await page.locator('.entry').first().waitFor();
  });

  test('03 §11.3: an account whose relay does not answer is recovered after a warning, with this device alone', async () => {
    const { page } = ann;
    const methods = `${(endpoints[1] ?? '').replace(/\/$/, '')}/**`;
    // Who it is it still says: the client needs that to go above the route that it published.
    await page
      .context()
      .route(methods, (route) =>
        route.request().url().endsWith('/relay/descriptor') ? route.continue() : route.abort(),
      );
    await page.getByText('I have a backup').click();
    await page.getByLabel('Backup file').setInputFiles(backup);
    await page.getByLabel('Password').fill('four words by chance');
    await button(page, 'Open').click();
    await page
      .getByRole('heading', { name: 'The relay of this account does not answer' })
      .waitFor();
    expect(await button(page, 'Recover the account here').isDisabled()).toBe(true);
    await page.getByLabel('The old relay is gone').check();
    await keepAll(page, 'recover');
    await button(page, 'Recover the account here').click();
    await page.locator('.entry').first().waitFor();
    await settingsPage(page, 'Relay');
    await page.locator('dd.id').getByText(relays.relay('a').server.relayId).waitFor();
  });
});
