/**
 * Tabs of one person in Chromium, on a real relay: the one that is connected is closed, crashes, stops or sleeps. What
 * was written before, meanwhile and after is there once and in order, at both people, and the list shows it.
 */
import type { Account } from '@posthouse/client';
import type { Browser, BrowserContext, CDPSession, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { befriend, beginAccount, inviteOf, type Office, openOffice, toList } from './office.ts';
import { hasChromium, openBrowserWith, visit } from './support.ts';
import { openWire, type Wire } from './wire.ts';

const texts = (page: Page, whose: 'own' | 'theirs') =>
  page.locator(`.messages li.${whose} article > p.plain`).allTextContents();
const draftOf = (page: Page) => page.getByLabel('Write a message').inputValue();

/** Texts that are being stored as messages, or that a tab took. */
const postingOf = (page: Page): Promise<string[]> =>
  page.evaluate(`Object.entries(localStorage)
    .flatMap(([key, text]) => key.startsWith('posthouse.posting.') ? [text] : [])`);

/** Which worker follows the account: the holder of the store's lock. */
async function leaderOf(page: Page): Promise<string | undefined> {
  return await page.evaluate(`navigator.locks.query().then(({ held }) =>
    held.find(({ name }) => name === 'posthouse/posthouse/follow')?.clientId)`);
}

describe.skipIf(!hasChromium)('tabs of one person', () => {
  let office: Office;
  let wire: Wire;
  let browser: Browser;
  let context: BrowserContext;
  let bob: Account;
  const stop = new AbortController();
  /** What each has written so far, in order. */
  const written = { ann: [] as string[], bob: [] as string[] };
  let tabs: Page[] = [];

  beforeAll(async () => {
    office = await openOffice();
    wire = await openWire(office.origin);
    browser = await openBrowserWith([wire.arg], office.origin);
    const { page } = await visit(browser, office.url);
    context = page.context();
    bob = await office.newPerson();
    await beginAccount(page);
    await befriend(page, bob, 'Bob');
    bob.subscribe(() => undefined, { signal: stop.signal });
    await page.close();
  });
  afterAll(async () => {
    stop.abort();
    await browser?.close();
    await wire?.[Symbol.asyncDispose]();
    await office?.[Symbol.asyncDispose]();
  });

  /** Opens a tab with the conversation; the first one leads. */
  async function openTab(): Promise<Page> {
    const page = await context.newPage();
    await page.goto(office.url);
    await page.locator('.entry').filter({ hasText: 'Bob' }).click();
    await page.getByLabel('Write a message').waitFor();
    if (tabs.length === 0) await expect.poll(() => leaderOf(page)).toBeDefined();
    tabs.push(page);
    return page;
  }

  async function twoTabs(): Promise<readonly [Page, Page]> {
    for (const page of tabs) await page.close();
    tabs = [];
    return [await openTab(), await openTab()];
  }

  /** Writes a text after what is in the field, which the tab took from another one, and sends both. */
  async function write(page: Page, text = ''): Promise<void> {
    const taken = (await draftOf(page)).split('\n').filter(Boolean);
    const whole = [...taken, text].filter(Boolean).join('\n');
    written.ann = [...written.ann.filter((one) => !taken.includes(one)), whole];
    await page.getByLabel('Write a message').fill(whole);
    await page.getByLabel('Write a message').press('Enter');
  }

  /** Waits until each text that was sent is a message, or in the field of a tab; returns the texts of the fields. */
  async function untilTaken(page: Page): Promise<readonly string[]> {
    // A tab that crashed has none.
    const open = tabs.filter((tab) => !tab.isClosed());
    const drafts = () => Promise.all(open.map((tab) => draftOf(tab).catch(() => '')));
    const posting = async () => {
      const [texts, shown] = [await postingOf(page), await drafts()];
      return texts.filter((text) => !shown.includes(text));
    };
    await expect.poll(posting).toEqual([]);
    return await drafts();
  }

  async function bobWrites(...all: readonly string[]): Promise<void> {
    const [ann] = await bob.contacts.list();
    for (const text of all) {
      written.bob.push(text);
      await bob.messages.post(ann?.account as string, { text });
    }
  }

  /** Whatever was written is there once, in order: in a tab, its list, and at the other person. */
  async function everythingIsThere(page: Page): Promise<void> {
    await expect.poll(() => texts(page, 'theirs')).toEqual(written.bob);
    await expect.poll(() => texts(page, 'own')).toEqual(written.ann);
    await expect
      .poll(async () => {
        const all = await bob.messages.list();
        return all.flatMap(({ from, body }) => (from === bob.id ? [] : (body?.text ?? '')));
      })
      .toEqual(written.ann);
    await page.locator('.own').getByText('waiting').waitFor({ state: 'detached' });
    const newest = await page.locator('.messages article > p.plain').last().textContent();
    const last = page.locator('.entry').filter({ hasText: 'Bob' }).locator('.last');
    await expect.poll(() => last.textContent()).toBe(newest?.replaceAll('\n', ' '));
    await expect.poll(() => page.locator('.entry .waits').count()).toBe(0);
  }

  /** What could not be stored any more is in the field of one tab, and leaves with Enter. Returns a new tab. */
  async function sendDraft(): Promise<Page> {
    const page = await openTab();
    await page.locator('.messages li').first().waitFor();
    const open = tabs.filter((tab) => !tab.isClosed());
    for (const [index, draft] of (await untilTaken(page)).entries()) {
      if (draft !== '') await write(open[index] as Page);
    }
    return page;
  }

  test('both write and receive at the same time', async () => {
    const [one, two] = await twoTabs();
    const bobs = bobWrites('b0', 'b1', 'b2', 'b3', 'b4');
    const ofTabs = [
      ['a0', 'a1'],
      ['a2', 'a3'],
    ] as const;
    await Promise.all(
      [one, two].map(async (page, index) => {
        for (const text of ofTabs[index] ?? []) await write(page, text);
      }),
    );
    await bobs;
    // Between tabs, the order is that of the store.
    await expect.poll(() => texts(one, 'own')).toHaveLength(4);
    written.ann = await texts(one, 'own');
    for (const of of ofTabs) {
      expect(written.ann.filter((text) => (of as readonly string[]).includes(text))).toEqual(of);
    }
    for (const page of [one, two]) await everythingIsThere(page);
  });

  test('the leading one is closed while messages leave and arrive: the other takes over', async () => {
    const [one, two] = await twoTabs();
    const leader = await leaderOf(two);
    const bobs = bobWrites('b5', 'b6', 'b7');
    for (const text of ['a4', 'a5', 'a6']) await write(one, text);
    await one.close();
    await untilTaken(two);
    await write(two, 'a7');
    await bobs;
    await expect.poll(() => leaderOf(two)).not.toBe(leader);
    await bobWrites('b8');
    await everythingIsThere(await sendDraft());
    await everythingIsThere(two);
  });

  test('the leading one crashes right after Enter: nothing is lost or sent twice', async () => {
    const [one, two] = await twoTabs();
    const leader = await leaderOf(two);
    const devTools = await context.newCDPSession(one);
    const crashed = new Promise((resolve) => one.once('crash', resolve));
    const bobs = bobWrites('b9', 'b10', 'b11');
    await write(one, 'a8');
    await write(one, 'a9');
    devTools.send('Page.crash').catch(() => undefined);
    await crashed;
    await bobs;
    await expect.poll(async () => (await leaderOf(two)) ?? leader).not.toBe(leader);
    await everythingIsThere(await sendDraft());
    await write(two, 'a10');
    await bobWrites('b12');
    await everythingIsThere(two);
  });

  test('a laptop slept, and its connections are gone without a word: everything is read and sent', async () => {
    const [one, two] = await twoTabs();
    const devTools: CDPSession = await browser.newBrowserCDPSession();
    const { processInfo } = await devTools.send('SystemInfo.getProcessInfo');
    const signalAll = (signal: 'SIGSTOP' | 'SIGCONT') => {
      for (const { id } of processInfo) process.kill(id, signal);
    };
    await everythingIsThere(two);
    signalAll('SIGSTOP');
    try {
      wire.forget();
      await bobWrites('b13', 'b14');
      // Longer than a page that is only busy: the page learns of its sleep by the clock.
      await new Promise((resolve) => setTimeout(resolve, 3_500));
    } finally {
      signalAll('SIGCONT');
    }
    await everythingIsThere(one);
    await write(one, 'a11');
    await everythingIsThere(one);
    await everythingIsThere(two);
  });

  test('the leading one is frozen by the browser, and later resumed: the other one goes on', async () => {
    const [one, two] = await twoTabs();
    const devTools = await context.newCDPSession(one);
    await devTools.send('Page.setWebLifecycleState', { state: 'frozen' });
    await bobWrites('b15');
    await write(two, 'a12');
    await everythingIsThere(two);
    await devTools.send('Page.setWebLifecycleState', { state: 'active' });
    await everythingIsThere(one);
  });

  test('a request that was accepted in one goes from the other when it is accepted there too', async () => {
    const [one, two] = await twoTabs();
    const eve = await office.newPerson();
    await eve.contacts.join(await inviteOf(one));
    for (const page of [one, two]) {
      await toList(page);
      await page.locator('.request').waitFor();
    }
    for (const page of [two, one]) {
      await page.getByRole('button', { name: 'Accept', exact: true }).click();
      await page.locator('.request').waitFor({ state: 'detached' });
      expect(await page.getByText('This cannot be sent').count()).toBe(0);
    }
  });

  test('a request that was accepted in one is not declined in the other, which says so', async () => {
    const [one, two] = await twoTabs();
    const fay = await office.newPerson();
    await fay.contacts.join(await inviteOf(one));
    for (const page of [one, two]) {
      await toList(page);
      await page.locator('.request').waitFor();
    }
    await two.getByRole('button', { name: 'Accept', exact: true }).click();
    await two.locator('.request').waitFor({ state: 'detached' });
    await one.getByRole('button', { name: 'Decline', exact: true }).click();
    await one.locator('.request').waitFor({ state: 'detached' });
    await one.getByText('This cannot be sent').waitFor();
  });
});
