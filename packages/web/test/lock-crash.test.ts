/**
 * Decision 0045: locking and unlocking a device, interrupted at each step by a crash of the page, with a second tab that is
 * opened at that step, in Chromium on a real relay.
 */
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { beginAccount, type Office, openOffice } from './office.ts';
import { hasChromium, openBrowser, visit } from './support.ts';

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const password = 'four words by chance';
const note = 'a note to find again';

/**
 * Makes the page stop at a call: `deleteDatabase <name>`, `put <name> <row>`, `delete <name> <row>`, a row as its collection, or
 * with its key. At `deleted <name>` the call is made, and its end is not told.
 */
const stopAt = `(step) => {
  let isStopped = false;
  globalThis.hasStopped = () => isStopped;
  const hold = (owner, name, stop) => {
    const own = owner.prototype[name];
    owner.prototype[name] = function (...args) {
      const key = name === 'put' ? args[1] : args[0];
      const where = [name, this.transaction?.db.name, String(key).replace('\\0', '/')].filter(Boolean).join(' ');
      if (where.replace('deleteDatabase', 'deleted') === step) own.apply(this, args);
      if ([where, where.replace('deleteDatabase', 'deleted'), where.split('/')[0]].includes(step)) isStopped = true;
      return isStopped ? stop(this) : own.apply(this, args);
    };
  };
  // The transaction is not made, and its end not told.
  const drop = ({ transaction }) => {
    transaction.oncomplete = transaction.onabort = null;
    transaction.abort();
  };
  hold(IDBFactory, 'deleteDatabase', () => ({}));
  hold(IDBObjectStore, 'put', drop);
  hold(IDBObjectStore, 'delete', drop);
}`;

describe.skipIf(!hasChromium)('a lock that is interrupted', () => {
  let office: Office;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;

  beforeAll(async () => {
    office = await openOffice();
    browser = await openBrowser(office.origin);
    ({ page } = await visit(browser, office.url));
    context = page.context();
    await beginAccount(page);
    await page.locator('.entry').filter({ hasText: 'Notes to myself' }).click();
    await page.getByLabel('Write a message').fill(note);
    await page.getByLabel('Write a message').press('Enter');
    await page.locator('.own').getByText(note).waitFor();
  });
  afterAll(async () => {
    await browser?.close();
    await office?.[Symbol.asyncDispose]();
  });

  /** A page of the origin that is not the app. */
  async function outside(): Promise<Page> {
    const other = await context.newPage();
    await other.goto(new URL('icon.svg', office.url).href);
    return other;
  }

  const kept = async (of: Page) => (await of.evaluate('({ ...localStorage })')) as object;

  /**
   * Crashes the page when it stops, with another tab opened before. What was written to `localStorage` since `before` is
   * lost: browsers write it to the disk seconds later. The page is that tab then.
   */
  async function crashAt(step: string, before: object): Promise<void> {
    await expect.poll(() => page.evaluate('hasStopped()'), { message: step }).toBe(true);
    const second = await context.newPage();
    await second.goto(office.url);
    const pending = `navigator.locks.query().then(({ pending }) => pending.map(({ name }) => name))`;
    await expect.poll(() => second.evaluate(pending)).toContain('posthouse.change');
    await second.getByText('Opening…').waitFor();
    const devTools = await context.newCDPSession(page);
    const crashed = new Promise((resolve) => page.once('crash', resolve));
    devTools.send('Page.crash').catch(() => undefined);
    await crashed;
    await page.close();
    await second.getByRole('heading').first().waitFor();
    await second.close();
    const other = await outside();
    await other.evaluate(`localStorage.clear();
      Object.assign(localStorage, ${JSON.stringify(before)});`);
    page = await context.newPage();
    await page.goto(office.url);
    await other.close();
    await page.getByRole('heading').first().waitFor();
  }

  /** Everything is there, by the password or without one, and no other store is. */
  async function isAs(locked: boolean): Promise<void> {
    expect(await page.getByRole('heading', { name: 'Locked' }).count()).toBe(locked ? 1 : 0);
    const names = `indexedDB.databases().then((all) => all.map(({ name }) => name))`;
    if (locked) await unlock();
    else await hasNote();
    const used = locked ? 'posthouse-locked' : 'posthouse';
    await expect.poll(() => page.evaluate(names)).toEqual([used]);
  }

  async function hasNote(): Promise<void> {
    await page.locator('.entry').filter({ hasText: note }).waitFor();
  }

  async function unlock(): Promise<void> {
    await page.getByLabel('Password').fill(password);
    await button(page, 'Open').click();
    await hasNote();
  }

  /** Locks the device, or removes the lock, as the step wants it. */
  async function toState(locked: boolean): Promise<void> {
    await toLockPage();
    const isDone = (await button(page, 'Remove the lock').count()) === (locked ? 1 : 0);
    if (isDone) return;
    await fillPasswords();
    const loaded = page.waitForEvent('load');
    await press();
    await loaded;
    if (locked) await unlock();
    await hasNote();
    await toLockPage();
  }

  async function fillPasswords(): Promise<void> {
    const labels =
      (await button(page, 'Remove the lock').count()) === 1
        ? ['Password of the lock']
        : ['Password', 'Password again'];
    for (const label of labels) await page.getByLabel(label, { exact: true }).fill(password);
    if (labels.length > 1) await page.getByLabel('Also open it with a passkey').uncheck();
  }

  async function press(): Promise<void> {
    const name = /^(?:Lock this device|Remove the lock)$/;
    await page.getByRole('main').getByRole('button', { name }).click();
  }

  async function toLockPage(): Promise<void> {
    await button(page, 'Settings').first().click();
    await button(page, 'Lock this device').click();
    await page.getByRole('heading', { name: 'Lock this device' }).waitFor();
  }

  /** Locks or unlocks the device, with a crash at a step. */
  async function interrupted(
    step: string,
    { from, to }: { readonly from: boolean; readonly to: boolean },
  ): Promise<void> {
    await toState(from);
    await fillPasswords();
    const before = await kept(page);
    await page.evaluate(`(${stopAt})(${JSON.stringify(step)})`);
    await press();
    await crashAt(step, before);
    await isAs(to);
  }

  test.each([
    ['deleteDatabase posthouse-locked', false],
    ['put posthouse-locked encryption/probe', false],
    ['put posthouse-locked messages', false],
    ['put posthouse-locked encryption/lock', false],
    ['deleteDatabase posthouse', true],
    ['deleted posthouse', true],
  ])(
    'locking that ends at "%s" leaves everything, and one answer to whether it is locked',
    (step, is) => interrupted(step, { from: false, to: is }),
  );

  test.each([
    ['deleteDatabase posthouse', true],
    ['put posthouse messages', true],
    ['delete posthouse-locked encryption/lock', true],
    ['deleteDatabase posthouse-locked', false],
    ['deleted posthouse-locked', false],
  ])(
    'unlocking that ends at "%s" leaves everything, and one answer to whether it is locked',
    (step, is) => interrupted(step, { from: true, to: is }),
  );

  test('a lock that an earlier version kept in localStorage is taken over, and opens what it did', async () => {
    await toState(true);
    await page.evaluate(moveLock);
    await page.reload();
    await page.getByRole('heading').first().waitFor();
    await isAs(true);
    expect(await page.evaluate(`localStorage.getItem('posthouse.lock')`)).toBeNull();
    await page.reload();
    await page.getByRole('heading').first().waitFor();
    await isAs(true);
  });

  test.each([
    ['deleteDatabase posthouse', 'leaves the account, to be erased again'],
    ['deleted posthouse', 'leaves no account'],
  ])('erasing that ends at "%s" %s; no other tab begins meanwhile', async (step, left) => {
    await toState(false);
    await button(page, 'Settings').first().click();
    await button(page, 'Erase this device').click();
    await page.getByLabel('Also remove this device from the account').uncheck();
    await page.getByLabel('I know that this cannot be undone').check();
    await page.evaluate(`(${stopAt})(${JSON.stringify(step)})`);
    await button(page, 'Erase everything').click();
    await crashAt(step, {});
    if (left === 'leaves no account') await button(page, 'New account').waitFor();
    else await isAs(false);
  });
});

/** Puts the lock where an earlier version kept it. */
const moveLock = `new Promise((resolve, reject) => {
  const opening = indexedDB.open('posthouse-locked');
  opening.onerror = () => reject(opening.error);
  opening.onsuccess = () => {
    const change = opening.result.transaction('entries', 'readwrite');
    const rows = change.objectStore('entries');
    const found = rows.get('encryption\0lock');
    found.onsuccess = () => {
      localStorage.setItem('posthouse.lock', found.result);
      rows.delete('encryption\0lock');
    };
    change.onabort = () => reject(change.error);
    change.oncomplete = () => {
      opening.result.close();
      resolve();
    };
  };
})`;
