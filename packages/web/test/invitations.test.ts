/** Invitations to groups that contacts send as messages, in two tabs of one person. */
import type { Account } from '@posthouse/client';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { befriend, beginAccount, type Office, openOffice, post } from './office.ts';
import { hasChromium, openBrowser, visit } from './support.ts';

describe.skipIf(!hasChromium)('invitations', () => {
  let office: Office;
  let browser: Browser;
  let tabs: readonly [Page, Page];
  let bob: Account;
  let carol: Account;
  beforeAll(async () => {
    office = await openOffice();
    browser = await openBrowser(office.origin);
    const { page } = await visit(browser, office.url);
    bob = await office.newPerson();
    carol = await office.newPerson();
    await beginAccount(page);
    await befriend(page, bob, 'Bob');
    await befriend(page, carol, 'Carol');
    const other = await page.context().newPage();
    await other.goto(office.url);
    await other.locator('.entry').first().waitFor();
    tabs = [page, other];
  });
  afterAll(async () => {
    await browser?.close();
    await office?.[Symbol.asyncDispose]();
  });

  const from = (page: Page, name: string) =>
    page.locator('.request').filter({ hasText: `${name} invites you` });
  const counts = (page: Page) =>
    Promise.all(['Bob', 'Carol'].map((name) => from(page, name).count()));

  test('one contact who sends many takes no place of another’s', async () => {
    await post(carol, 'come: posthouse-group:carol1');
    for (const page of tabs) await from(page, 'Carol').waitFor();
    await post(bob, ...Array.from({ length: 25 }, (_, index) => `posthouse-group:bob${index}`));
    for (const page of tabs) await expect.poll(() => counts(page)).toEqual([3, 1]);
  });

  test('one that was declined in one tab comes back in none, whatever arrives', async () => {
    const [one, two] = tabs;
    await from(one, 'Carol').getByRole('button', { name: 'Decline' }).click();
    for (const page of tabs) await expect.poll(() => counts(page)).toEqual([3, 0]);
    await post(bob, 'posthouse-group:bob99', 'the last one');
    for (const page of tabs) {
      await page.locator('.entry').filter({ hasText: 'the last one' }).waitFor();
      await expect.poll(() => counts(page)).toEqual([3, 0]);
    }
    await two.reload();
    await expect.poll(() => counts(two)).toEqual([3, 0]);
  });
});
