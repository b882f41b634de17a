/** Decision 0045: addresses name screens, not accounts, in Chromium on a real relay. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { befriend, beginAccount, type Office, openOffice, post, toList } from './office.ts';
import { hasChromium, openBrowser, visit } from './support.ts';

const click = (page: Page, name: string) =>
  page.getByRole('button', { name, exact: true }).first().click();

describe.skipIf(!hasChromium)('addresses', () => {
  let office: Office;
  let browser: Browser;
  beforeAll(async () => {
    office = await openOffice();
    browser = await openBrowser(office.origin);
  });
  afterAll(async () => {
    await browser?.close();
    await office?.[Symbol.asyncDispose]();
  });

  test('0045: no address, request line or referrer of any screen names an account, device, group or channel', async () => {
    const bob = await office.newPerson();
    const { page, complaints } = await visit(browser, office.url);
    const seen: string[] = [];
    page.on('framenavigated', (frame) => seen.push(frame.url()));
    page.context().on('request', (request) => {
      const { referer, authorization } = request.headers();
      seen.push(request.url(), referer ?? '');
      expect(authorization ?? '').not.toContain(bob.id);
    });
    await beginAccount(page);
    await befriend(page, bob, 'Bob');
    await post(bob, 'hello');
    const note = () => seen.push(page.url());
    await page.locator('.entry').filter({ hasText: 'Bob' }).click();
    await page.getByRole('heading', { name: 'Bob' }).waitFor();
    note();
    await click(page, 'Person');
    await page.getByLabel('Name on your devices').waitFor();
    note();
    for (const [kind, name, made] of [
      ['New group', 'Chess', 'Make the group'],
      ['New channel', 'News', 'Make the channel'],
    ] as const) {
      await toList(page);
      await click(page, kind);
      await page.getByLabel('Name', { exact: true }).fill(name);
      await click(page, made);
      await page.getByRole('heading', { name, level: 1 }).waitFor();
      note();
      await toList(page);
      await page.locator('.entry').filter({ hasText: name }).click();
      await page.getByRole('heading', { name }).first().waitFor();
      note();
    }
    await toList(page);
    await click(page, 'Settings');
    const id = (await page.locator('dd.id').textContent()) ?? '';
    note();
    for (const name of ['Devices', 'Relay', 'Erase this device', 'Save a backup']) {
      await toList(page);
      await click(page, 'Settings');
      await page.locator('main').getByRole('button', { name, exact: true }).click();
      await page.getByRole('heading', { name, level: 1 }).waitFor();
      note();
    }
    await page.reload();
    await page.locator('.entry').filter({ hasText: 'Bob' }).waitFor();
    note();
    const told = new Set(seen);
    expect(told.size).toBeGreaterThan(8);
    const secrets = [id, bob.id].map((each) => each.split(':').at(-1) ?? each);
    for (const address of told) {
      for (const secret of secrets) expect(address).not.toContain(secret);
      expect(address).not.toMatch(/neo:|neo%3A|dev_|grp_|chan_|svc-/i);
    }
    expect(complaints).toEqual([]);
  });
});
