/**
 * A locked device in the messenger (decisions 0037, 0043), in Chromium with an authenticator of its own
 * making, on a real relay.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Relay } from '@posthouse/relay';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { builtMessenger } from './office.ts';
import { hasChromium, openBrowser, type Visitor, visit } from './support.ts';

const folder = mkdtempSync(join(tmpdir(), 'messenger-'));
let relay: Relay;
let browser: Browser;
let url: string;
beforeAll(async () => {
  if (!hasChromium) return;
  relay = await Relay.start({
    ...{ dev: true, data: join(folder, 'relay'), listen: '127.0.0.1:0', log: 'silent' },
    ...{ name: 'The post office', web: { folder: await builtMessenger() } },
  });
  const [endpoint = ''] = relay.https;
  // Passkeys are bound to names, not to addresses of the network.
  url = new URL('/app/', endpoint).href.replace('127.0.0.1', 'localhost');
  browser = await openBrowser(new URL(endpoint).origin);
});
afterAll(async () => {
  await browser?.close();
  await relay?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const password = 'four words by chance';

async function keep(page: Page, name: string): Promise<void> {
  const { MESSENGER_PICTURES: pictures } = process.env;
  if (pictures !== undefined) await page.screenshot({ path: join(pictures, `${name}.png`) });
}

/** Everything that the browser stores for the page, as text. */
async function stored(page: Page): Promise<string> {
  return (await page.evaluate(`(async () => {
    const found = [JSON.stringify(localStorage)];
    for (const { name } of await indexedDB.databases()) {
      const database = await new Promise((resolve) => {
        const request = indexedDB.open(name);
        request.onsuccess = () => resolve(request.result);
      });
      const rows = await new Promise((resolve) => {
        const request = database.transaction('entries').objectStore('entries').getAll();
        request.onsuccess = () => resolve(request.result);
      });
      database.close();
      found.push(name, ...rows);
    }
    return found.join('\\n');
  })()`)) as string;
}

async function openLockPage(page: Page): Promise<void> {
  await button(page, 'Settings').first().click();
  await button(page, 'Lock this device').click();
  await page.getByRole('heading', { name: 'Lock this device' }).waitFor();
}

describe.skipIf(!hasChromium)('a locked device', () => {
  let ann: Visitor;
  let session: CDPSession;
  let authenticatorId: string;
  let id: string;

  test('what it stores is encrypted from then on; another tab has to be closed before', async () => {
    ann = await visit(browser, url, { viewport: { width: 320, height: 640 }, colorScheme: 'dark' });
    const { page } = ann;
    session = await page.context().newCDPSession(page);
    await session.send('WebAuthn.enable');
    const added = await session.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        ...{ protocol: 'ctap2', ctap2Version: 'ctap2_1', transport: 'internal', hasPrf: true },
        ...{ hasResidentKey: true, hasUserVerification: true, isUserVerified: true },
        automaticPresenceSimulation: true,
      },
    });
    authenticatorId = added.authenticatorId;
    await button(page, 'New account').click();
    await page.locator('.entry').filter({ hasText: 'Notes to myself' }).click();
    await page.getByLabel('Write a message').fill('a secret note');
    await page.getByLabel('Write a message').press('Enter');
    await page.locator('.own').getByText('a secret note').waitFor();
    await page.getByLabel('Write a message').fill('a secret draft');
    await button(page, 'Back').click();
    await button(page, 'Settings').click();
    id = (await page.locator('dd.id').textContent()) ?? '';
    await button(page, 'Lock this device').click();
    expect(await stored(page)).toContain('a secret note');
    await page.evaluate(`localStorage['posthouse.key-passkeys'] = 'a secret passkey'`);
    for (const label of ['Password', 'Password again']) {
      await page.getByLabel(label, { exact: true }).fill(password);
    }
    const other = await page.context().newPage();
    await other.goto(url);
    await other.locator('.entry').first().waitFor();
    await page.getByRole('main').getByRole('button', { name: 'Lock this device' }).click();
    await page.getByText('Close the other tabs').waitFor();
    await other.close();
    await page.getByLabel('Also open it with a passkey').check();
    await keep(page, 'lock-dark-narrow');
    await page.getByRole('main').getByRole('button', { name: 'Lock this device' }).click();
    await button(page, 'Open with a passkey').waitFor();
    await keep(page, 'locked-dark-narrow');
    const found = await stored(page);
    expect(found).toContain('posthouse-locked');
    expect(found).not.toContain('a secret');
    expect(found.split('\n')).not.toContain('posthouse');
  });

  test('the passkey opens it, with the account key in it; so does the password, and no other', async () => {
    const { page } = ann;
    await button(page, 'Open with a passkey').click();
    await page.locator('.entry').filter({ hasText: 'a secret note' }).waitFor();
    await button(page, 'Settings').click();
    expect(await page.locator('dd.id').textContent()).toBe(id);
    await button(page, 'Devices').click();
    await button(page, 'Renew for a year').click();
    await page.getByText('valid for about a year again').waitFor();
    await session.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false });
    await page.reload();
    await button(page, 'Open with a passkey').click();
    await page.getByText('No passkey was used').waitFor();
    await page.getByLabel('Password').fill('four words by mistake');
    await button(page, 'Open').click();
    await page.getByText('The password is wrong').waitFor();
    await page.getByLabel('Password').fill(password);
    await button(page, 'Open').click();
    await page.getByRole('heading', { name: 'Devices', exact: true }).waitFor();
  });

  test('without the lock everything is there again', async () => {
    const { page } = ann;
    await openLockPage(page);
    await page.getByText('A passkey opens it, too').waitFor();
    await page.getByLabel('Password of the lock').fill(password);
    await button(page, 'Remove the lock').click();
    await page.locator('.entry').filter({ hasText: 'a secret note' }).waitFor();
    const found = await stored(page);
    expect(found).not.toContain('posthouse-locked');
    expect(found).toContain('a secret note');
    expect(ann.complaints).toEqual([]);
  });

  test('where no passkey can be made the password locks it; who forgot it can erase the device', async () => {
    const { page } = await visit(browser, url.replace('localhost', '127.0.0.1'));
    await button(page, 'New account').click();
    await page.locator('.entry').first().waitFor();
    await openLockPage(page);
    for (const label of ['Password', 'Password again']) {
      await page.getByLabel(label, { exact: true }).fill(password);
    }
    const lock = page.getByRole('main').getByRole('button', { name: 'Lock this device' });
    await lock.click();
    await page.getByRole('alert').getByText('Use the password').waitFor();
    await lock.click();
    await page.getByRole('heading', { name: 'Locked' }).waitFor();
    expect(await button(page, 'Open with a passkey').count()).toBe(0);
    await keep(page, 'locked');
    const other = await page.context().newPage();
    await other.goto(url.replace('localhost', '127.0.0.1'));
    await other.getByRole('heading', { name: 'Locked' }).waitFor();
    await page.getByText('I cannot open it').click();
    await button(page, 'Erase everything').click();
    await button(page, 'New account').waitFor();
    // A tab that still asks for the password opens no new store with it.
    await other.getByLabel('Password').fill(password);
    await button(other, 'Open').click();
    await button(other, 'New account').waitFor();
    expect(await stored(other)).not.toContain('posthouse-locked');
  });
});
