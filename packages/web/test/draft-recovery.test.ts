/**
 * Decision 0045: a text that was sent with Enter is a message, once, or in the draft, whatever another tab does meanwhile, and
 * whichever call or place fails. In Chromium on a real relay.
 */
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import {
  draftOf,
  draftTabs,
  failWithdrawals,
  field,
  holdPosts,
  isHeld,
  kept,
  noSpace,
  noSpaceForPosting,
  own,
} from './draft-support.ts';
import { hasChromium } from './support.ts';

describe.skipIf(!hasChromium)('a text that was sent', () => {
  const tabs = draftTabs();

  /** Sends a text from a tab, which gets no answer. */
  async function hold(page: Page, text: string): Promise<void> {
    await page.evaluate(holdPosts);
    await field(page).fill(text);
    await field(page).press('Enter');
    await isHeld(page);
  }

  const countOf = async (page: Page, text: string) =>
    (await own(page)).filter((each) => each === text).length;

  /** Stores texts as entries of another tab, by draft ID, and leaves the field empty. */
  async function store(page: Page, part: string, texts: Record<string, string>): Promise<void> {
    await field(page).fill('shows the place');
    const [place = ''] = (await kept(page, 'draft')) as string[];
    await field(page).fill('');
    for (const [draftId, text] of Object.entries(texts)) {
      const key = `${place.replace('.draft.', `.${part}.`)}.${draftId}`;
      await page.evaluate(`localStorage.setItem('${key}', '${text}')`);
    }
  }

  /** Whether a text is stored in some place, by itself or in lines with others. */
  const isStored = (page: Page, text: string) =>
    page.evaluate(
      `Object.values(localStorage).some((each) => each.split('\\n').includes('${text}'))`,
    );

  test('is kept if another tab writes after one took it, and what that one writes is kept, too', async () => {
    const [one, three] = [await tabs.openTab('Bob'), await tabs.openTab()];
    await tabs.open(one, 'Notes to myself');
    await tabs.open(three, 'Bob');
    await hold(one, 'taken text');
    const two = await tabs.openTab();
    await tabs.crash(one);
    await expect.poll(() => draftOf(two)).toBe('taken text');
    await tabs.open(three, 'Notes to myself');
    await field(three).fill('typed in three');
    await field(two).press('End');
    await field(two).pressSequentially('!');
    await two.close();
    // Waits for the end of two, and takes its text.
    await expect.poll(() => draftOf(three)).toBe('typed in three\ntaken text!');
    await tabs.crash(three);
    const next = await tabs.openTab();
    await expect.poll(() => draftOf(next)).toBe('typed in three\ntaken text!');
    await field(next).press('Enter');
    await expect.poll(() => own(next)).toContain('typed in three\ntaken text!');
    await expect.poll(() => kept(next, 'posting')).toEqual([]);
    expect(await kept(next, 'draft')).toEqual([]);
  });

  test('is not replaced while two tabs write different texts', async () => {
    const [one, two] = [await tabs.openTab(), await tabs.openTab()];
    await field(one).fill('of one');
    await field(two).fill('of two');
    await field(one).fill('of one, more');
    await tabs.crash(two);
    await tabs.crash(one);
    const next = await tabs.openTab();
    // Which of them has the shared place follows from what each process of the browser sees first.
    const lines = async () => (await draftOf(next)).split('\n').sort();
    await expect.poll(lines).toEqual(['of one, more', 'of two']);
    await field(next).fill('');
    expect(await kept(next, 'draft')).toEqual([]);
    expect(await kept(next, 'posting')).toEqual([]);
  });

  test('is taken by a tab that was open before it was sent', async () => {
    const [one, two] = [await tabs.openTab(), await tabs.openTab()];
    await two.locator('.messages li').first().waitFor();
    for (const text of ['sent later', 'sent last']) await hold(one, text);
    await one.close();
    await expect.poll(() => draftOf(two)).toBe('sent later\nsent last');
    await field(two).fill('');
  });

  test('is not sent twice if the worker stored it and its answer was lost', async () => {
    const page = await tabs.openTab();
    await hold(page, 'answer lost');
    await page.evaluate('leaveUnanswered()');
    await expect.poll(() => countOf(page, 'answer lost')).toBe(1);
    await page.evaluate('fail()');
    await expect.poll(() => kept(page, 'posting')).toEqual([]);
    expect(await draftOf(page)).toBe('');
    expect(await countOf(page, 'answer lost')).toBe(1);
  });

  test('stays stored if it is not known whether it is a message, and is in the field once that is known', async () => {
    const page = await tabs.openTab();
    await hold(page, 'not known');
    await page.evaluate(failWithdrawals);
    await page.evaluate('fail()');
    await expect.poll(() => page.evaluate('hasFailed()')).toBe(true);
    expect(await draftOf(page)).toBe('');
    expect(await isStored(page, 'not known')).toBe(true);
    await page.reload();
    await expect.poll(() => draftOf(page)).toBe('not known');
    await field(page).fill('');
  });

  test('does not come back after it was taken and posted without space for the draft', async () => {
    const one = await tabs.openTab();
    await hold(one, 'no space to take it');
    await tabs.crash(one);
    const two = await tabs.openTab(undefined, noSpace);
    await expect.poll(() => draftOf(two)).toBe('no space to take it');
    expect(await kept(two, 'posting')).toHaveLength(1);
    await field(two).press('Enter');
    await expect.poll(() => countOf(two, 'no space to take it')).toBe(1);
    await expect.poll(() => kept(two, 'posting')).toEqual([]);
    await two.close();
    const next = await tabs.openTab();
    await next.locator('.messages li').first().waitFor();
    expect(await draftOf(next)).toBe('');
  });

  test('without an entry of its own stays stored before what is typed meanwhile', async () => {
    const page = await tabs.openTab();
    await page.evaluate(noSpaceForPosting);
    await hold(page, 'one place');
    await field(page).fill('typed on');
    expect(await isStored(page, 'one place')).toBe(true);
    await page.evaluate('leave()');
    await expect.poll(() => countOf(page, 'one place')).toBe(1);
    await expect.poll(() => isStored(page, 'one place')).toBe(false);
    expect(await isStored(page, 'typed on')).toBe(true);
    await field(page).fill('');
  });

  test('of the version before is compared with the messages', async () => {
    const page = await tabs.openTab();
    await field(page).fill('known before');
    await field(page).press('Enter');
    await expect.poll(() => countOf(page, 'known before')).toBe(1);
    const later = Date.now() + 3_600_000;
    // In one tab: another one that is open may be the one that takes it.
    await store(page, 'sending', { [`${later}.1.a`]: 'known before' });
    await page.reload();
    await expect.poll(() => draftOf(page)).toBe('known before');
    await field(page).fill('');
    const time = Date.now();
    await store(page, 'sending', {
      [`${time}.1.a`]: 'known before',
      [`${time}.2.a`]: 'not known before',
    });
    await page.reload();
    await expect.poll(() => draftOf(page)).toBe('not known before');
    expect(await kept(page, 'sending')).toEqual([]);
    await field(page).fill('');
  });

  test('is in the field although another entry has a name that no draft can have', async () => {
    const page = await tabs.openTab();
    await store(page, 'posting', { [`0${'a'.repeat(100)}.a`]: 'wrong name', '1.a': 'right name' });
    await page.reload();
    await expect.poll(() => draftOf(page)).toBe('wrong name\nright name');
    await field(page).fill('');
    expect(await kept(page, 'posting')).toEqual([]);
  });
});
