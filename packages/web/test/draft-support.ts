/** Tabs in which a person writes, ends and crashes: what tests of drafts have in common. */
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect } from 'vitest';
import { befriend, beginAccount, type Office, openOffice, toList } from './office.ts';
import { openBrowser, visit } from './support.ts';

export const field = (page: Page) => page.getByLabel('Write a message');
export const draftOf = (page: Page) => field(page).inputValue();
export const own = (page: Page) =>
  page.locator('.messages li.own article > p.plain').allTextContents();
export const kept = (page: Page, part: string) =>
  page.evaluate(`Object.keys(localStorage).filter((key) => key.startsWith('posthouse.${part}.'))`);

/** Keeps posts from reaching the worker until `leave()` or `fail()`. */
export const holdPosts = `(() => {
  const held = [];
  const own = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (request, ...rest) {
    if (request?.path?.join('.') !== 'messages.post') return own.call(this, request, ...rest);
    held.push([this, request, rest]);
  };
  /** The worker does what it is asked, but its answer is lost. */
  globalThis.leaveUnanswered = () => {
    for (const [worker, request, rest] of held) own.call(worker, { ...request, id: -1 }, ...rest);
  };
  globalThis.isHolding = () => held.length > 0;
  globalThis.leave = () => {
    for (const [worker, request, rest] of held.splice(0)) own.call(worker, request, ...rest);
  };
  globalThis.fail = () => {
    for (const [worker, { id }] of held.splice(0)) {
      const data = { id, error: { name: 'Error', message: 'it is refused' } };
      worker.dispatchEvent(new MessageEvent('message', { data }));
    }
  };
})()`;

/** The browser has no space for texts of conversations. */
export const noSpace = `(() => {
  const own = Storage.prototype.setItem;
  Storage.prototype.setItem = function (key, value) {
    if (/^posthouse\\.(draft|posting)\\./.test(key)) throw new DOMException('', 'QuotaExceededError');
    own.call(this, key, value);
  };
})()`;

/** The same, but only for texts that are being stored as messages. */
export const noSpaceForPosting = noSpace.replace('draft|posting', 'posting');

/** Texts that were stored as messages stay noted as if they were not. */
export const keepPosting = `(() => {
  const own = Storage.prototype.removeItem;
  Storage.prototype.removeItem = function (key) {
    if (!key.startsWith('posthouse.posting.')) own.call(this, key);
  };
})()`;

/** After \`watch(text)\`, notes whether that text is stored, after each change of what is stored. */
export const watchStorage = `(() => {
  globalThis.moments = [];
  let watched;
  globalThis.watch = (text) => {
    watched = text;
  };
  for (const name of ['setItem', 'removeItem']) {
    const own = Storage.prototype[name];
    Storage.prototype[name] = function (...args) {
      own.apply(this, args);
      if (watched !== undefined) moments.push(Object.values(localStorage).includes(watched));
    };
  }
})()`;

/** Calls that withdraw a draft fail. */
export const failWithdrawals = `(() => {
  let failed = 0;
  const own = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (request, ...rest) {
    if (request?.path?.join('.') !== 'conversations.withdrawDraft') {
      return own.call(this, request, ...rest);
    }
    const data = { id: request.id, error: { name: 'Error', message: 'it is closed' } };
    setTimeout(() => {
      this.dispatchEvent(new MessageEvent('message', { data }));
      failed += 1;
    });
  };
  globalThis.hasFailed = () => failed > 0;
})()`;

export async function isHeld(page: Page): Promise<void> {
  await expect.poll(() => page.evaluate('isHolding()')).toBe(true);
}

/** The tabs of a person with an account, before the tests of the file begin; each test begins without one. */
export class DraftTabs {
  #office: Office | undefined;
  #browser: Browser | undefined;
  #context: BrowserContext | undefined;

  get context(): BrowserContext {
    if (this.#context === undefined) throw new Error('the browser was not opened');
    return this.#context;
  }

  async start(): Promise<void> {
    this.#office = await openOffice();
    this.#browser = await openBrowser(this.#office.origin);
    const visitor = await visit(this.#browser, this.#office.url);
    this.#context = visitor.page.context();
    await beginAccount(visitor.page);
    await befriend(visitor.page, await this.#office.newPerson(), 'Bob');
    await visitor.page.close();
  }

  async stop(): Promise<void> {
    await this.#browser?.close();
    await this.#office?.[Symbol.asyncDispose]();
  }

  /** @param script runs before those of the page */
  async openTab(name = 'Notes to myself', script = ''): Promise<Page> {
    const page = await this.context.newPage();
    await page.addInitScript(script);
    await page.goto(this.#office?.url ?? '');
    await this.open(page, name);
    return page;
  }

  async open(page: Page, name: string): Promise<void> {
    const title = name === 'Bob' ? 'Bob' : /^(?:You|Notes to myself)$/;
    const heading = page.getByRole('main').getByRole('heading', { name: title, level: 1 });
    // A click while the list moves opens another entry: as a person would, again.
    await expect
      .poll(async () => {
        await toList(page);
        await page.locator('.entry').filter({ hasText: name }).click();
        return await heading.waitFor({ timeout: 5_000 }).then(
          () => true,
          () => false,
        );
      })
      .toBe(true);
    await field(page).waitFor();
  }

  async crash(page: Page): Promise<void> {
    const crashed = new Promise((resolve) => page.once('crash', resolve));
    const devTools = await this.context.newCDPSession(page);
    devTools.send('Page.crash').catch(() => undefined);
    await crashed;
  }
}

export function draftTabs(): DraftTabs {
  const tabs = new DraftTabs();
  beforeAll(() => tabs.start());
  afterAll(() => tabs.stop());
  // What a test that failed left open.
  beforeEach(async () => {
    for (const page of tabs.context.pages()) await page.close();
  });
  return tabs;
}
