/** Notifications of the messenger while it is open and hidden, in Chromium, on a real relay. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { befriend, beginAccount, type Office, openOffice, post } from './office.ts';
import { hasChromium, openBrowser, visit } from './support.ts';

let office: Office;
let browser: Browser;
beforeAll(async () => {
  if (!hasChromium) return;
  office = await openOffice();
  browser = await openBrowser(office.origin);
});
afterAll(async () => {
  await browser?.close();
  await office?.[Symbol.asyncDispose]();
});

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

/** Titles and texts of the notifications that are shown. */
async function shown(page: Page): Promise<string> {
  return (await page.evaluate(`navigator.serviceWorker.ready
    .then((registration) => registration.getNotifications())
    .then((all) => all.map(({ title, body }) => title + ': ' + body).join())`)) as string;
}

/** What the browser does with a tab that another one hides, or that is shown again. */
async function see(page: Page, state: 'hidden' | 'visible'): Promise<void> {
  await page.evaluate(`Object.defineProperty(document, 'visibilityState', { configurable: true, value: '${state}' });
    document.dispatchEvent(new Event('visibilitychange'));`);
}

describe.skipIf(!hasChromium)('notifications', () => {
  test('are asked for in the settings only, are shown while the page is hidden, and have a text if that was chosen', async () => {
    const ann = await office.newPerson();
    const { page, complaints } = await visit(browser, office.url);
    await page.context().grantPermissions(['notifications'], { origin: office.origin });
    await beginAccount(page);
    await befriend(page, ann, 'Ann <b>');
    await page.evaluate('navigator.serviceWorker.ready.then(() => 0)');
    await button(page, 'Settings').click();
    await button(page, 'Notifications').click();
    await page.getByLabel('Who wrote', { exact: true }).check();
    const { MESSENGER_PICTURES: pictures } = process.env;
    if (pictures !== undefined) await page.screenshot({ path: `${pictures}/notifications.png` });
    await post(ann, 'while it is seen');
    await page.locator('.entry').filter({ hasText: 'while it is seen' }).waitFor();
    expect(await shown(page)).toBe('');
    await see(page, 'hidden');
    await post(ann, 'secret one');
    await expect.poll(() => shown(page)).toBe('Ann <b>: New message');
    await page.getByLabel('Who wrote, and the beginning of the text').check();
    await post(ann, `two \u202e${'x'.repeat(500)}`);
    await expect.poll(() => shown(page)).toMatch(/^Ann <b>: two \[U\+202E\]x{1,120}$/);
    await page.getByLabel('None').check();
    await page.evaluate(`navigator.serviceWorker.ready
      .then((registration) => registration.getNotifications())
      .then((all) => all.forEach((each) => each.close()))`);
    await post(ann, 'three');
    await page.locator('.entry').filter({ hasText: 'three' }).waitFor();
    expect(await shown(page)).toBe('');
    expect(complaints).toEqual([]);
  });

  test('none is shown while another tab is seen; they go on after following failed', async () => {
    const bob = await office.newPerson();
    const { page } = await visit(browser, office.url);
    const context = page.context();
    await context.grantPermissions(['notifications'], { origin: office.origin });
    await context.addInitScript(`globalThis.follows = [];
      const { postMessage } = Worker.prototype;
      Worker.prototype.postMessage = function (request, ...more) {
        if (request.path?.join('.') === 'follow') follows.push([this, request.id]);
        return postMessage.call(this, request, ...more);
      };`);
    await beginAccount(page);
    await befriend(page, bob, 'Bob');
    await page.evaluate('navigator.serviceWorker.ready.then(() => 0)');
    const other = await context.newPage();
    await other.goto(office.url);
    await other.locator('.entry').filter({ hasText: 'Bob' }).waitFor();
    await button(page, 'Settings').click();
    await button(page, 'Notifications').click();
    await page.getByLabel('Who wrote', { exact: true }).check();
    // The other one is told, and says that it is seen.
    await expect
      .poll(() =>
        page.evaluate(`navigator.locks.query()
          .then(({ held }) => held.filter(({ name }) => name === 'posthouse.seen').length)`),
      )
      .toBe(2);
    await see(page, 'hidden');
    await post(bob, 'seen in the other');
    for (const tab of [page, other]) {
      await tab.locator('.entry').filter({ hasText: 'seen in the other' }).waitFor();
    }
    expect(await shown(page)).toBe('');
    await other.evaluate(`follows.splice(0).forEach(([worker, id]) => worker.dispatchEvent(
      new MessageEvent('message', { data: { id, error: { name: 'Error', message: 'no luck' } } })))`);
    await other.getByText('It is tried again.').waitFor();
    await other.getByText('It is tried again.').waitFor({ state: 'detached' });
    await page.close();
    await see(other, 'hidden');
    await post(bob, 'after the fault');
    await expect.poll(() => shown(other)).toBe('Bob: New message');
  });

  test('a browser that does not permit them says so', async () => {
    const { page } = await visit(browser, office.url);
    await beginAccount(page);
    await button(page, 'Settings').click();
    await button(page, 'Notifications').click();
    await page.evaluate(`Notification.requestPermission = async () => 'denied'`);
    await page.getByLabel('Who wrote', { exact: true }).click();
    await page.getByText('The browser does not permit notifications').waitFor();
    expect(await page.getByLabel('None').isChecked()).toBe(true);
  });
});
