/**
 * Decision 0045: the end of a device's account in a page, when it is erased or locked: what is being read then, another page
 * that keeps the store open, and what is left afterwards. In Chromium on a real relay.
 */
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { beginAccount, type Office, openOffice } from './office.ts';
import { hasChromium, openBrowser, visit } from './support.ts';

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

/** Gives answers to reads of the list in place of the worker: `answer(limit)` returns one, or nothing. */
const answerLists = `(answer) => {
  globalThis.lists = 0;
  const own = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (request, ...rest) {
    if (request?.path?.join('.') !== 'conversations.list') return own.call(this, request, ...rest);
    globalThis.lists += 1;
    const data = answer(request.args[0].limit);
    if (data === undefined) return;
    setTimeout(() => this.dispatchEvent(new MessageEvent('message', { data: { id: request.id, ...data } })));
  };
}`;

describe.skipIf(!hasChromium)('the end of a device', () => {
  let office: Office;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;

  beforeAll(async () => {
    office = await openOffice();
    browser = await openBrowser(office.origin);
    ({ page } = await visit(browser, office.url));
    context = page.context();
    await context.grantPermissions(['notifications'], { origin: office.origin });
    await beginAccount(page);
  });
  afterAll(async () => {
    await browser?.close();
    await office?.[Symbol.asyncDispose]();
  });

  async function toErase(): Promise<void> {
    await button(page, 'Settings').first().click();
    await button(page, 'Erase this device').click();
    await page.getByLabel('I know that this cannot be undone').check();
  }

  async function writeNote(text: string): Promise<void> {
    await page.locator('.entry').filter({ hasText: 'Notes to myself' }).click();
    await page.getByLabel('Write a message').fill(text);
    await page.getByLabel('Write a message').press('Enter');
  }

  test('a search in a list that cannot be read asks for it once, and not again and again', async () => {
    const all = await context.newPage();
    await all.goto(office.url);
    await all.locator('.entry').first().waitFor();
    await all.evaluate(`(${answerLists})((limit) => globalThis.isFailing
      ? { error: { name: 'Error', message: 'not now' } }
      : { value: Array.from({ length: limit }, (_, at) =>
          ({ kind: 'person', id: 'N' + String(at).padStart(33, 'A'), unread: 0, waiting: 0, place: '' })) })`);
    await all.locator('.entry').filter({ hasText: 'Notes to myself' }).click();
    await all.getByLabel('Write a message').fill('so that it is read');
    await all.getByLabel('Write a message').press('Enter');
    await expect.poll(() => all.locator('.entry').count()).toBeGreaterThan(49);
    await all.evaluate('globalThis.isFailing = true; globalThis.lists = 0; 1');
    await all.getByRole('searchbox').fill('a');
    await all.getByText('not now').waitFor();
    // What would be asked for at once is asked for before a later task.
    await all.evaluate(
      'new Promise((done) => { let at = 0; const next = () => (at++ < 200 ? setTimeout(next) : done()); next(); })',
    );
    expect(await all.evaluate('globalThis.lists')).toBeLessThan(10);
    await all.close();
  });

  test('what is being read when the client closes does not end the page; a page that keeps the store is named', async () => {
    await writeNote('read for ever');
    await page.locator('.own').getByText('read for ever').waitFor();
    const other = await context.newPage();
    await other.goto(new URL('icon.svg', office.url).href);
    await other.evaluate(`new Promise((done) => {
      const opening = indexedDB.open('posthouse');
      opening.onsuccess = () => { globalThis.kept = opening.result; done(); };
    })`);
    await page.evaluate(`(${answerLists})(() => undefined)`);
    await page.getByLabel('Write a message').fill('a message whose list is never read');
    await page.getByLabel('Write a message').press('Enter');
    await expect.poll(() => page.evaluate('globalThis.lists')).toBeGreaterThan(0);
    await page.getByLabel('Write a message').fill('a draft');
    await toErase();
    await page
      .getByLabel('Also remove it')
      .uncheck()
      .catch(() => undefined);
    await button(page, 'Erase everything').click();
    await page.getByText('Close the other tabs of this app first').waitFor();
    expect(await page.getByText('This page cannot go on').count()).toBe(0);
    // A person who does not wait leaves no draft.
    expect(
      await page.evaluate('Object.keys(localStorage).filter((key) => /draft|sending/.test(key))'),
    ).toEqual([]);
    await other.evaluate('kept.close(); 1');
    await button(page, 'New account').waitFor();
    await other.close();
  });

  test('after an erase nothing of the account is shown: badge, notifications, history, links in other tabs', async () => {
    await page.evaluate('navigator.serviceWorker.ready');
    await beginAccount(page);
    await page.evaluate(
      `navigator.serviceWorker.ready.then((found) => found.showNotification('Bob', { body: 'hello' }))`,
    );
    const shown = (of: Page) =>
      of.evaluate(`navigator.serviceWorker.ready.then((found) => found.getNotifications())
      .then((all) => all.length)`);
    await expect.poll(() => shown(page)).toBe(1);
    await page.locator('.entry').filter({ hasText: 'Notes to myself' }).click();
    await page.getByLabel('Write a message').waitFor();
    const { id } = (await page.evaluate('history.state.route ?? history.state')) as { id: string };
    const other = await context.newPage();
    await other.goto(`${office.url}#invite=an-invite`);
    await other
      .getByText('An invite of')
      .or(other.getByText('This is not an invite'))
      .or(other.getByLabel('Invite, as link or text'))
      .first()
      .waitFor();
    const carried = () =>
      other.evaluate(`Object.keys(sessionStorage).filter((key) => key.startsWith('posthouse.'))`);
    expect(await carried()).toContain('posthouse.invite');
    await page.exposeFunction('badge', (count: number) => badges.push(count));
    const badges: number[] = [];
    await page.evaluate('navigator.setAppBadge = async (count) => { await badge(count); }; 1');
    await toErase();
    await button(page, 'Erase everything').click();
    await button(page, 'New account').waitFor();
    expect(badges.at(-1)).toBe(0);
    await expect.poll(carried).toEqual([]);
    await expect.poll(() => shown(page)).toBe(0);
    await beginAccount(page);
    for (let back = 0; back < 8; back += 1) {
      await page.goBack();
      if (((await page.evaluate('JSON.stringify(history.state)')) as string).includes(id)) break;
    }
    expect(await page.evaluate('JSON.stringify(history.state)')).toContain(id);
    await button(page, 'Add a person').waitFor();
    expect(await page.locator('.chat').count()).toBe(0);
    await other.close();
  });
});
