/** A person who is blocked, in Chromium, on a real relay: requests, the list and the settings (03 §15.2). */
import type { Account } from '@posthouse/client';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  befriend,
  beginAccount,
  inviteOf,
  type Office,
  openOffice,
  post,
  toList,
} from './office.ts';
import { hasChromium, openBrowser, type Visitor, visit } from './support.ts';

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

describe.skipIf(!hasChromium)('a person who is blocked', () => {
  let office: Office;
  let browser: Browser;
  let ann: Visitor;
  let bob: Account;
  let invite: string;
  beforeAll(async () => {
    office = await openOffice();
    browser = await openBrowser(office.origin);
    ann = await visit(browser, office.url);
    await beginAccount(ann.page);
    bob = await office.newPerson();
    await befriend(ann.page, bob, 'Bob');
    invite = await inviteOf(ann.page);
    await post(bob, 'Hello Ann');
    await ann.page.locator('.entry').filter({ hasText: 'Hello Ann' }).waitFor();
  });
  afterAll(async () => {
    await browser?.close();
    await office?.[Symbol.asyncDispose]();
  });

  const entryOf = (name: string) => ann.page.locator('.entry').filter({ hasText: name });

  /** Zoe writes after Bob: what she wrote is there when his would be. */
  async function zoeArrives(): Promise<void> {
    const zoe = await office.newPerson();
    await zoe.contacts.join(invite, { note: 'Zoe' });
    await ann.page.getByText('Zoe', { exact: true }).waitFor();
  }

  test('03 §15.2: the conversation is hidden, nothing more arrives, also no request', async () => {
    const { page } = ann;
    await entryOf('Bob').click();
    await button(page, 'Person').click();
    await page.locator('summary').getByText('Block this person').click();
    await button(page, 'Block this person').click();
    await entryOf('Bob').waitFor({ state: 'detached' });
    await post(bob, 'Are you there?');
    await bob.contacts.join(invite, { note: 'It is me' });
    await bob.sync();
    await zoeArrives();
    expect(await page.locator('.request').count()).toBe(1);
    expect(await page.locator('.pane').textContent()).not.toMatch(/Bob|It is me|Are you there/);
  });

  test('03 §15.2: a stranger who asks is blocked at once; after a reload nothing of both is there', async () => {
    const { page } = ann;
    await page.locator('.request').getByRole('button', { name: 'Block' }).click();
    await page.locator('.request').waitFor({ state: 'detached' });
    await page.reload();
    await page.locator('.entry').first().waitFor();
    expect(await page.locator('.entry').count()).toBe(1);
    expect(await page.locator('.request').count()).toBe(0);
  });

  test('03 §15.2: unblocked, the person can ask again; accepted, the conversation is there again', async () => {
    const { page } = ann;
    await button(page, 'Settings').click();
    await button(page, 'Blocked people').click();
    const line = page.locator('.people li').filter({ hasText: 'Bob' });
    expect(await page.locator('.people li').count()).toBe(2);
    await line.getByRole('button', { name: 'Unblock' }).click();
    await line.waitFor({ state: 'detached' });
    await toList(page);
    await bob.contacts.join(invite, { note: 'It is me' });
    await page.getByText('It is me').waitFor();
    await button(page, 'Accept').click();
    await entryOf('Hello Ann').waitFor();
    await bob.sync();
  });

  test('no page complained', () => {
    expect(ann.complaints).toEqual([]);
  });
});
