/** A conversation while messages arrive: what is read stays, what arrives is announced, what is hidden is not read. */
import { type Account, ClientError } from '@posthouse/client';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { befriend, beginAccount, type Office, openOffice, post } from './office.ts';
import { hasChromium, openBrowser, type Visitor, visit } from './support.ts';

describe.skipIf(!hasChromium)('a conversation that is read', () => {
  let office: Office;
  let browser: Browser;
  let ann: Visitor;
  let bob: Account;
  beforeAll(async () => {
    office = await openOffice();
    browser = await openBrowser(office.origin);
    ann = await visit(browser, office.url);
    bob = await office.newPerson();
    await beginAccount(ann.page);
    await befriend(ann.page, bob, 'Bob');
    await post(bob, ...Array.from({ length: 150 }, (_, index) => `line ${index + 1}`));
  });
  afterAll(async () => {
    await browser?.close();
    await office?.[Symbol.asyncDispose]();
  });

  const announced = (page: Page) =>
    page.locator('.timeline [aria-live=polite] p').allTextContents();
  const line = (page: Page, text: string) =>
    page.locator('.messages').getByText(text, { exact: true });
  const topOf = async (page: Page, text: string) =>
    (await line(page, text).boundingBox())?.y ?? Number.NaN;
  /** Pixels, up or down; browsers scroll by whole ones. */
  const moved = async (page: Page, text: string, from: number) =>
    Math.abs((await topOf(page, text)) - from);

  test('opening it announces nothing; one that arrives is announced with its name, many by their number', async () => {
    const { page } = ann;
    await page.getByText('150 unread messages', { exact: true }).waitFor();
    await page.locator('.entry').filter({ hasText: 'Bob' }).click();
    await line(page, 'line 150').waitFor();
    expect(await announced(page)).toEqual([]);
    const long = `hello ${'x'.repeat(500)}`;
    await post(bob, long);
    await expect.poll(() => announced(page)).toEqual([`Bob: ${long.slice(0, 100)}`]);
    await post(bob, 'once more', 'and again');
    // One after the other or both at once: the last is among what is announced at the end.
    await expect.poll(() => announced(page)).toContain('Bob: and again');
    await page.getByLabel('Write a message').fill('her own');
    await page.getByLabel('Write a message').press('Enter');
    await line(page, 'her own').waitFor();
    expect((await announced(page)).join()).not.toContain('her own');
  });

  test('what is read stays where it is: while others arrive, and while earlier ones are loaded', async () => {
    const { page } = ann;
    await line(page, 'line 120').scrollIntoViewIfNeeded();
    const before = await topOf(page, 'line 120');
    await post(bob, ...Array.from({ length: 45 }, (_, index) => `later ${index + 1}`));
    const down = page.getByRole('button', { name: '45 new messages' });
    await down.waitFor();
    expect(await moved(page, 'line 120', before)).toBeLessThan(1.5);
    // A keyboard leads to what is above.
    const older = page.getByRole('button', { name: 'Earlier messages' });
    await older.focus();
    await line(page, 'line 115').scrollIntoViewIfNeeded();
    const place = await topOf(page, 'line 115');
    await older.press('Enter');
    await line(page, 'line 60').waitFor();
    expect(await moved(page, 'line 115', place)).toBeLessThan(1.5);
    await down.click();
    await expect.poll(() => line(page, 'later 45').isVisible()).toBe(true);
    await down.waitFor({ state: 'detached' });
    expect(await page.evaluate('document.activeElement.className')).toBe('messages');
  });

  test('a message that arrives between a scroll and its event does not undo the scroll, and is not read', async () => {
    const { page } = ann;
    // A busy page draws its next frame late, and sends the event with it.
    await page.evaluate(`globalThis.withhold = (event) => event.stopImmediatePropagation();
      addEventListener('scroll', withhold, true);`);
    await line(page, 'later 10').evaluate((element) => element.scrollIntoView());
    const place = await topOf(page, 'later 10');
    await post(bob, 'in between');
    const down = page.getByRole('button', { name: '1 new message' });
    await down.waitFor();
    expect(await moved(page, 'later 10', place)).toBeLessThan(1.5);
    await page.evaluate(`removeEventListener('scroll', withhold, true);
      document.querySelector('.messages').dispatchEvent(new Event('scroll'));`);
    await expect.poll(() => page.title()).toBe('(1) The post office');
    expect(await moved(page, 'later 10', place)).toBeLessThan(1.5);
    await down.click();
    await down.waitFor({ state: 'detached' });
    await expect.poll(() => page.title()).toBe('The post office');
  });

  test('a message that arrives while one is written leaves the focus where it is', async () => {
    const { page } = ann;
    await page.getByLabel('Write a message').focus();
    await page.keyboard.type('half ');
    await post(bob, 'meanwhile');
    await line(page, 'meanwhile').waitFor();
    await page.keyboard.type('done');
    expect(await page.getByLabel('Write a message').inputValue()).toBe('half done');
    await page.getByLabel('Write a message').fill('');
  });

  test('a message that arrives has no other searched for links again', async () => {
    const { page } = ann;
    expect(await page.locator('.messages article').count()).toBeGreaterThan(40);
    await page.evaluate(`globalThis.searched = [];
      const { matchAll } = String.prototype;
      String.prototype.matchAll = function (...args) {
        searched.push(String(this));
        return matchAll.apply(this, args);
      };`);
    await post(bob, 'searched once');
    await line(page, 'searched once').waitFor();
    expect(new Set((await page.evaluate('searched')) as string[])).toEqual(
      new Set(['searched once']),
    );
  });

  test('earlier messages and one that arrives render no line again that was shown before', async () => {
    const { page } = ann;
    const shown = () => page.locator('.messages article').count();
    const before = await shown();
    // Each line writes its time so once, when it is rendered.
    await page.evaluate(`globalThis.rendered = 0;
      const { toISOString } = Date.prototype;
      Date.prototype.toISOString = function () {
        rendered += 1;
        return toISOString.call(this);
      };`);
    await page.evaluate(`document.querySelector('.older button').click()`);
    await expect.poll(shown).toBeGreaterThan(before);
    const added = (await shown()) - before;
    await post(bob, 'rendered once');
    await line(page, 'rendered once').waitFor();
    // It is read, which is told to all lists.
    await expect.poll(() => page.title()).toBe('The post office');
    expect(await page.evaluate('rendered')).toBe(added + 1);
  });

  test('in a hidden tab nothing is read; when it is seen again, it is', async () => {
    const { page } = ann;
    const set = (state: 'hidden' | 'visible') =>
      page.evaluate(`Object.defineProperty(document, 'visibilityState', { configurable: true, value: '${state}' });
        document.dispatchEvent(new Event('visibilitychange'));`);
    await set('hidden');
    await post(bob, 'unseen');
    await line(page, 'unseen').waitFor();
    await expect.poll(() => page.title()).toBe('(1) The post office');
    await set('visible');
    await expect.poll(() => page.title()).toBe('The post office');
  });

  test('no page complained', () => {
    expect(ann.complaints).toEqual([]);
  });
});

describe.skipIf(!hasChromium)('faults', () => {
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

  /** Answers the next calls of a method in the worker with an error. */
  const failing = `
    globalThis.faults = 0;
    const { postMessage } = Worker.prototype;
    Worker.prototype.postMessage = function (request, ...more) {
      if (faults === 0 || request.path?.join('.') !== 'conversations.list') {
        return postMessage.call(this, request, ...more);
      }
      faults -= 1;
      const error = { name: 'Error', message: 'no luck', ...globalThis.fault };
      this.dispatchEvent(new MessageEvent('message', { data: { id: request.id, error } }));
    };`;

  test('a list that cannot be read is read again; an error of the store ends the page', async () => {
    const context = await browser.newContext();
    await context.addInitScript(failing);
    const page = await context.newPage();
    await page.goto(office.url);
    await beginAccount(page);
    await befriend(page, await office.newPerson(), 'Bob');
    await page.evaluate('faults = Infinity');
    const notes = page.locator('.entry').filter({ hasText: 'Notes to myself' });
    await notes.click();
    await page.getByLabel('Write a message').fill('remember');
    await page.getByLabel('Write a message').press('Enter');
    await page.getByText('It is tried again. Something went wrong.').waitFor();
    await page.evaluate('faults = 0');
    await notes.getByText('remember').waitFor();
    await page.getByText('It is tried again.').waitFor({ state: 'detached' });
    await page.getByLabel('Write a message').fill('and this');
    const fault = new ClientError('store_unavailable', 'gone').toJSON();
    await page.evaluate(`globalThis.fault = ${JSON.stringify(fault)}; faults = 1`);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'This page cannot go on' }).waitFor();
    await context.close();
  });

  test('an invite of a link is still there if the page is loaded again before there is an account', async () => {
    const bob = await office.newPerson();
    const { text } = await bob.contacts.invite();
    const { page } = await visit(browser, `${office.url}#invite=${encodeURIComponent(text)}`);
    const begin = page.getByRole('button', { name: 'New account', exact: true });
    await begin.waitFor();
    expect(page.url()).not.toContain('invite');
    await page.reload();
    await begin.click();
    await page.getByText('An invite of').waitFor();
    await page.getByRole('button', { name: 'Ask', exact: true }).click();
    await page.getByText('Your request was sent.').waitFor();
    // Used: the next start is at the list.
    await page.reload();
    await page.getByRole('button', { name: 'Add a person', exact: true }).waitFor();
    expect(await page.getByText('An invite of').count()).toBe(0);
  });
});
