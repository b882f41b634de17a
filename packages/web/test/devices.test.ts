/** Devices of an account in the messenger, in Chromium, on a real relay (03 §11.2, §18). */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Relay } from '@posthouse/relay';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { builtMessenger, toList } from './office.ts';
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
  url = new URL('/app/', endpoint).href;
  browser = await openBrowser(new URL(endpoint).origin);
});
afterAll(async () => {
  await browser?.close();
  await relay?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
/** A point of P-256: the key of no account here. */
const someKey = 'A2sX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKW';
const narrow = { width: 320, height: 640 };

async function keep(page: Page, name: string, isWhole = false): Promise<void> {
  const { MESSENGER_PICTURES: pictures } = process.env;
  if (pictures === undefined) return;
  const size = page.viewportSize() ?? narrow;
  if (isWhole) await page.setViewportSize({ ...size, height: 2_000 });
  await page.screenshot({ path: join(pictures, `${name}.png`) });
  if (isWhole) await page.setViewportSize(size);
}

async function newAccount(options: object = {}): Promise<Visitor> {
  const visitor = await visit(browser, url, options);
  await button(visitor.page, 'New account').click();
  await visitor.page.locator('.entry').first().waitFor();
  return visitor;
}

async function settingsPage(page: Page, name: string): Promise<void> {
  await button(page, 'Settings').first().click();
  await button(page, name).click();
  await page.getByRole('heading', { name, level: 1 }).waitFor();
}

/** Gives a text to the form of this name. */
async function paste(page: Page, form: string, text: string): Promise<void> {
  const take = page.getByRole('form', { name: form });
  await take.locator('textarea').fill(text);
  await take.getByRole('button', { name: 'Go on' }).click();
}

describe.skipIf(!hasChromium)('another device joins an account (03 §11.2)', () => {
  let old: Visitor;
  let joining: Visitor;
  let link: string;
  let request: string;
  let approval: string;

  test('the old device shows a link, as text and QR code; the new one a request with its ID', async () => {
    old = await newAccount();
    await settingsPage(old.page, 'Devices');
    await old.page.getByText('this device').waitFor();
    await keep(old.page, 'devices');
    await button(old.page, 'Add a device').click();
    await old.page.getByRole('img', { name: 'QR code: Link for the new device' }).waitFor();
    await keep(old.page, 'add-device', true);
    link = await old.page.getByLabel('Link for the new device', { exact: true }).inputValue();
    expect(link.startsWith(`${url}#device=`)).toBe(true);
    joining = await visit(browser, link, { viewport: narrow, colorScheme: 'dark' });
    const { page } = joining;
    await page.getByRole('img', { name: 'QR code: Request of the new device' }).waitFor();
    expect(page.url()).not.toContain('device=');
    request = await page.getByLabel('Request of the new device', { exact: true }).inputValue();
    await keep(page, 'join-dark-narrow', true);
  });

  test('a reload interrupts nothing: the request is of the same keys', async () => {
    const { page } = joining;
    const id = await page.locator('.compare code').textContent();
    await page.reload();
    await page.locator('.compare code').waitFor();
    expect(await page.locator('.compare code').textContent()).toBe(id);
  });

  test('what is no request, of another account or expired is not approved, and says why', async () => {
    const { page } = old;
    const form = 'Request of the new device';
    await paste(page, form, 'hello');
    await page.getByText('This is not the request of a device').waitFor();
    const stranger = await visit(browser, `${url}#device=${someKey}`);
    const other = stranger.page.getByLabel('Request of the new device', { exact: true });
    await paste(page, form, await other.inputValue());
    await button(stranger.page, 'Do not join').click();
    await button(stranger.page, 'New account').waitFor();
    await stranger.page.reload();
    await button(stranger.page, 'New account').waitFor();
    await page.getByText('This request is for another account').waitFor();
    const expired = JSON.parse(request);
    expired.certificate.expires_at = expired.certificate.not_before + 1;
    await paste(page, form, JSON.stringify(expired));
    await page.getByText('This request is too old').waitFor();
  });

  test('a request that is refused adds nothing', async () => {
    const { page } = old;
    await paste(page, 'Request of the new device', request);
    await page.getByText('Does the new device show this ID?').waitFor();
    await keep(page, 'compare');
    await button(page, 'No').click();
    await page.getByText('The device was not added').waitFor();
    expect(await page.locator('.devices > li').count()).toBe(1);
  });

  test('approved after both showed the same ID, it comes in; answers to others are not taken', async () => {
    const { page } = old;
    await button(page, 'Add a device').click();
    await page
      .getByRole('form', { name: 'Request of the new device' })
      .locator('input')
      .setInputFiles({
        ...{ name: 'device-request.json', mimeType: 'application/json' },
        buffer: Buffer.from(request),
      });
    const shown = page.locator('section .compare code').last();
    await button(page, 'Yes, add it').waitFor();
    expect(await shown.textContent()).toBe(
      await joining.page.locator('.compare code').textContent(),
    );
    await page.getByLabel('Name, for you in this browser').last().fill('Telephone');
    await button(page, 'Yes, add it').click();
    const answer = page.getByLabel('Answer to the new device', { exact: true });
    await answer.waitFor();
    await keep(page, 'approved', true);
    approval = await answer.inputValue();
    await paste(joining.page, 'Answer to the new device', request);
    await joining.page.getByText('This is not an answer').waitFor();
    const forged = JSON.parse(approval);
    forged.certificate.expires_at += 1;
    await paste(joining.page, 'Answer to the new device', JSON.stringify(forged));
    await joining.page.getByText('This is not an answer').waitFor();
    await paste(joining.page, 'Answer to the new device', approval);
    await joining.page.locator('.entry').first().waitFor();
    await button(page, 'Done').click();
    await page.locator('.devices > li').filter({ hasText: 'Telephone' }).waitFor();
    await keep(page, 'two-devices', true);
  });

  test('the new one has no copy of the account key: the backup opens it for a while', async () => {
    await button(old.page, 'Save a backup').first().click();
    for (const label of ['Password', 'Password again']) {
      await old.page.getByLabel(label, { exact: true }).fill('four words by chance');
    }
    const downloading = old.page.waitForEvent('download');
    await button(old.page, 'Save the file').click();
    const backup = await (await downloading).path();
    await button(old.page, 'I have the file').click();
    const { page } = joining;
    await settingsPage(page, 'Devices');
    await button(page, 'Renew for a year').click();
    await page.getByText('Do it on the device with the key').waitFor();
    await page.getByLabel('Backup file').setInputFiles(backup);
    await page.getByLabel('Password').fill('four words by chance');
    await keep(page, 'account-key-dark-narrow', true);
    await button(page, 'Open the key').click();
    await page.getByText('The account’s key is open').waitFor();
    await button(page, 'Renew for a year').click();
    await page.getByText('valid for about a year again').waitFor();
  });

  test('it is renewed and named; the old one gives it its messages, and removes it after a question', async () => {
    const { page } = old;
    await settingsPage(page, 'Devices');
    await button(page, 'Renew for a year').click();
    await page.getByText('valid for about a year again').waitFor();
    const other = page.locator('.devices > li').filter({ hasText: 'Telephone' });
    await other.getByRole('button', { name: 'Give it my messages' }).click();
    await page.getByText('messages were sent to it').waitFor();
    await other.getByText('Remove the device').click();
    await other.getByText('It reads and sends nothing more').waitFor();
    await keep(page, 'remove-device');
    await other.getByRole('button', { name: 'Remove it' }).click();
    await page.getByText('The device was removed').waitFor();
    await expect.poll(() => page.locator('.devices > li').count()).toBe(1);
  });

  test('the removed one says so on every screen, keeps what it has, and asks the relay once', async () => {
    const { page } = joining;
    const notice = page.locator('.notice').getByText('This device was removed from the account.');
    await page.context().addInitScript(`globalThis.follows = 0;
      const { postMessage } = Worker.prototype;
      Worker.prototype.postMessage = function (request, ...more) {
        if (request.path?.join('.') === 'follow') follows += 1;
        return postMessage.call(this, request, ...more);
      };`);
    // At its next sign-in, which is now.
    await page.reload();
    await notice.waitFor();
    await button(page, 'What now?').click();
    await page.getByRole('heading', { name: 'What is still here' }).waitFor();
    await keep(page, 'ended-dark-narrow', true);
    await button(page, 'Back').click();
    await toList(page);
    await page.locator('.entry').first().click();
    await page.locator('.composer').getByText('This device was removed').waitFor();
    expect(await page.getByLabel('Write a message').count()).toBe(0);
    await button(page, 'What now?').click();
    await button(page, 'Save what is on this device').click();
    const downloading = page.waitForEvent('download');
    await button(page, 'As text, to read').click();
    await downloading;
    expect(await page.evaluate('follows')).toBe(1);
    await page.reload();
    await notice.waitFor();
    await page.context().setOffline(true);
    await page.reload();
    await notice.waitFor();
    await page.context().setOffline(false);
  });

  test('it joins again as a new device: it is erased, and asks the same account', async () => {
    const { page } = joining;
    await button(page, 'What now?').click();
    await page.locator('summary').filter({ hasText: 'Join again' }).click();
    await button(page, 'Erase and ask to join').click();
    const field = page.getByLabel('Request of the new device', { exact: true });
    await field.waitFor();
    const again = JSON.parse(await field.inputValue());
    const before = JSON.parse(request);
    expect(again.certificate.account).toBe(before.certificate.account);
    expect(again.certificate).not.toEqual(before.certificate);
    await button(page, 'Do not join').click();
    await button(page, 'New account').waitFor();
  });

  test('an answer is of no use after the device was removed; joining can be cancelled', async () => {
    const { page } = await visit(browser, url);
    await button(page, 'I have this account on another device').click();
    await paste(page, 'The link that your other device shows', link);
    const asking = page.getByLabel('Request of the new device', { exact: true });
    const asked = await asking.inputValue();
    await paste(page, 'Answer to the new device', approval);
    await page.getByText('The answer is for another device or account').waitFor();
    await button(old.page, 'Add a device').click();
    await paste(old.page, 'Request of the new device', asked);
    await button(old.page, 'Yes, add it').click();
    const answer = old.page.getByLabel('Answer to the new device', { exact: true });
    const late = await answer.inputValue();
    await button(old.page, 'Done').click();
    const added = old.page.locator('.devices > li').last();
    await added.getByText('Remove the device').click();
    await added.getByRole('button', { name: 'Remove it' }).click();
    await expect.poll(() => old.page.locator('.devices > li').count()).toBe(1);
    await paste(page, 'Answer to the new device', late);
    await page.getByText('The account does not have this device').waitFor();
    await button(page, 'Do not join').click();
    await button(page, 'I have this account on another device').click();
    await paste(page, 'The link that your other device shows', 'https://example.org/');
    await page.getByText('This is not the link of another device').waitFor();
    await button(page, 'Do not join').click();
    await button(page, 'New account').waitFor();
    await page.reload();
    await button(page, 'New account').waitFor();
    await keep(page, 'welcome');
  });

  test('no page complained of anything', () => {
    expect(old.complaints).toEqual([]);
  });
});
