/**
 * Decision 0045: what a person writes is lost by no order of events, and is not sent twice: no space, two tabs, posts that
 * fail late, tabs that end, and a locked device. In Chromium on a real relay.
 */
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import {
  draftOf,
  draftTabs,
  field,
  holdPosts,
  isHeld,
  keepPosting,
  kept,
  noSpace,
  noSpaceForPosting,
  own,
  watchStorage,
} from './draft-support.ts';
import { hasChromium } from './support.ts';

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

describe.skipIf(!hasChromium)('what is being written', () => {
  const tabs = draftTabs();
  const openTab = (name?: string) => tabs.openTab(name);
  const open = (page: Page, name: string) => tabs.open(page, name);
  const crash = (page: Page) => tabs.crash(page);

  test('a text for which there is no space is sent, and is in the field again if posting fails', async () => {
    const page = await openTab();
    await page.evaluate(noSpace);
    await page.evaluate(holdPosts);
    await field(page).fill('no space 1');
    await field(page).press('Enter');
    await isHeld(page);
    expect(await draftOf(page)).toBe('');
    await page.evaluate('leave()');
    await expect.poll(() => own(page)).toContain('no space 1');
    await field(page).fill('no space 2');
    await field(page).press('Enter');
    await isHeld(page);
    await page.evaluate('fail()');
    await expect.poll(() => draftOf(page)).toBe('no space 2');
    await open(page, 'Bob');
    await open(page, 'Notes to myself');
    expect(await draftOf(page)).toBe('no space 2');
    await field(page).fill('');
    await page.close();
  });

  test('a second tab does not take a text that the first is posting', async () => {
    const one = await openTab();
    await one.evaluate(holdPosts);
    await field(one).fill('posted for long');
    await field(one).press('Enter');
    await isHeld(one);
    const two = await openTab();
    await two.locator('.messages li').first().waitFor();
    expect(await draftOf(two)).toBe('');
    await expect.poll(() => kept(two, 'posting')).toHaveLength(1);
    await one.evaluate('leave()');
    await expect.poll(() => own(two)).toContain('posted for long');
    await expect.poll(() => kept(two, 'posting')).toEqual([]);
    expect(await draftOf(two)).toBe('');
    await one.close();
    await two.close();
  });

  test('a post that fails after the conversation was opened again adds its text to what was written since', async () => {
    const page = await openTab();
    await page.evaluate(holdPosts);
    await field(page).fill('fails late');
    await field(page).press('Enter');
    await isHeld(page);
    await open(page, 'Bob');
    await open(page, 'Notes to myself');
    await page.locator('.messages li').first().waitFor();
    expect(await draftOf(page)).toBe('');
    await field(page).fill('written since');
    await page.evaluate('fail()');
    await expect.poll(() => draftOf(page)).toBe('fails late\nwritten since');
    await page.reload();
    await expect.poll(() => draftOf(page)).toBe('fails late\nwritten since');
    expect(await own(page)).not.toContain('fails late');
    await field(page).fill('');
    await page.close();
  });

  test('what a tab that ended was posting is once in the field, in one of the tabs that are opened next', async () => {
    const page = await openTab();
    await page.evaluate(holdPosts);
    await field(page).fill('its tab ends');
    await field(page).press('Enter');
    await isHeld(page);
    await crash(page);
    const both = await Promise.all([openTab(), openTab()]);
    const drafts = () => Promise.all(both.map(draftOf));
    await expect.poll(async () => (await drafts()).sort()).toEqual(['', 'its tab ends']);
    expect(await kept(both[0], 'posting')).toHaveLength(1);
    const [one, two] = (await draftOf(both[0])) === '' ? [both[1], both[0]] : both;
    await field(one).press('Enter');
    await expect.poll(() => own(two)).toContain('its tab ends');
    expect(await drafts()).toEqual(['', '']);
    await expect.poll(() => kept(one, 'posting')).toEqual([]);
    await one.close();
    await two.close();
    await page.close();
  });

  test('a draft that is shown in two tabs and sent from one is gone from the other', async () => {
    const one = await openTab('Bob');
    await field(one).fill('in two tabs');
    const two = await openTab('Bob');
    expect(await draftOf(two)).toBe('in two tabs');
    await field(one).press('Enter');
    await expect.poll(() => own(two)).toEqual(['in two tabs']);
    await expect.poll(() => draftOf(two)).toBe('');
    await field(two).press('Enter');
    // What is written in one tab stays there, whatever another one writes and sends.
    await field(two).fill('in the second tab');
    await field(one).fill('in the first tab');
    await field(one).press('Enter');
    await expect.poll(() => own(two)).toEqual(['in two tabs', 'in the first tab']);
    expect(await draftOf(two)).toBe('in the second tab');
    await open(one, 'Bob');
    expect(await own(one)).toEqual(['in two tabs', 'in the first tab']);
    await field(two).fill('');
    expect(await kept(two, 'draft')).toEqual([]);
    await one.close();
    await two.close();
  });

  test('a draft that is shown in two tabs and emptied in one stays in the other', async () => {
    const one = await openTab('Bob');
    await field(one).fill('emptied in one');
    const two = await openTab('Bob');
    expect(await draftOf(two)).toBe('emptied in one');
    // Events of the storage arrive in order: after this one, all before it have.
    await one.evaluate(`addEventListener('storage', ({ key }) => {
      if (key === 'after') globalThis.isAfter = true;
    })`);
    await field(two).fill('');
    await two.evaluate(`localStorage.setItem('after', '1')`);
    await expect.poll(() => one.evaluate('globalThis.isAfter')).toBe(true);
    expect(await draftOf(one)).toBe('emptied in one');
    await field(one).fill('');
    await one.evaluate(`localStorage.removeItem('after')`);
    await one.close();
    await two.close();
  });

  test('at every moment from typing until it is a message, a text is stored', async () => {
    const page = await openTab();
    await page.evaluate(watchStorage);
    await page.evaluate(holdPosts);
    await field(page).fill('always stored');
    await page.evaluate(`watch('always stored')`);
    await field(page).press('Enter');
    await isHeld(page);
    expect(await page.evaluate('moments')).toEqual([true, true]);
    await page.evaluate('leave()');
    await expect.poll(() => own(page)).toContain('always stored');
    await expect.poll(() => kept(page, 'posting')).toEqual([]);
    expect(await kept(page, 'draft')).toEqual([]);
    await page.close();
  });

  test('a text for which there is no second place stays the stored draft until it is a message', async () => {
    const page = await openTab();
    await page.evaluate(noSpaceForPosting);
    await page.evaluate(holdPosts);
    await field(page).fill('one place only');
    await field(page).press('Enter');
    await isHeld(page);
    expect(await draftOf(page)).toBe('');
    expect(await kept(page, 'draft')).toHaveLength(1);
    await page.evaluate('leave()');
    await expect.poll(() => own(page)).toContain('one place only');
    await expect.poll(() => kept(page, 'draft')).toEqual([]);
    await page.close();
  });

  test('a text that equals a message before it is in the field again if its tab ends', async () => {
    const page = await openTab();
    await field(page).fill('the same twice');
    await field(page).press('Enter');
    await expect.poll(() => own(page)).toContain('the same twice');
    await page.evaluate(holdPosts);
    await field(page).fill('the same twice');
    await field(page).press('Enter');
    await isHeld(page);
    await crash(page);
    const next = await openTab();
    await expect.poll(() => draftOf(next)).toBe('the same twice');
    await field(next).fill('');
    await next.close();
  });

  test('a tab that ends after another was opened leaves what it was posting in the field of that one', async () => {
    const one = await openTab();
    await one.evaluate(holdPosts);
    await field(one).fill('ends later');
    await field(one).press('Enter');
    await isHeld(one);
    const two = await openTab();
    await two.locator('.messages li').first().waitFor();
    expect(await draftOf(two)).toBe('');
    await one.close();
    await expect.poll(() => draftOf(two)).toBe('ends later');
    await field(two).fill('');
    expect(await kept(two, 'posting')).toEqual([]);
    await two.close();
  });

  test('a text that is a message already is not in the field, whatever its tab knew of that', async () => {
    const page = await openTab();
    await page.evaluate(keepPosting);
    await field(page).fill('known to the store');
    await field(page).press('Enter');
    await expect.poll(() => own(page)).toContain('known to the store');
    expect(await kept(page, 'posting')).toHaveLength(1);
    await crash(page);
    const next = await openTab();
    await expect.poll(() => kept(next, 'posting')).toEqual([]);
    expect(await draftOf(next)).toBe('');
    const all = await own(next);
    expect(all.filter((text) => text === 'known to the store')).toHaveLength(1);
    await next.close();
  });

  test('what is sent from one tab does not remove what is being written in another', async () => {
    const [one, two] = [await openTab(), await openTab()];
    await field(one).fill('sent from one');
    await field(two).fill('written in two');
    await field(one).press('Enter');
    await expect.poll(() => own(two)).toContain('sent from one');
    await crash(two);
    await one.close();
    const next = await openTab();
    await expect.poll(() => draftOf(next)).toBe('written in two');
    await field(next).fill('');
    await next.close();
  });

  test('0037: on a locked device it stays while something else is shown, and is stored nowhere', async () => {
    const page = await openTab('Bob');
    await field(page).fill('before the lock');
    await button(page, 'Settings').first().click();
    await button(page, 'Devices').click();
    await page.getByText('Change the name').first().click();
    await page.getByLabel('Name, for you in this browser').first().fill('my own laptop');
    await page.locator('.devices').getByRole('button', { name: 'Save' }).first().click();
    await page.locator('.devices h2').getByText('my own laptop').waitFor();
    await button(page, 'Settings').first().click();
    await button(page, 'Lock this device').click();
    for (const label of ['Password', 'Password again']) {
      await page.getByLabel(label, { exact: true }).fill('four words by chance');
    }
    const lock = page.getByRole('main').getByRole('button', { name: 'Lock this device' });
    await lock.click();
    await page.getByRole('alert').filter({ hasText: /./ }).waitFor();
    await lock.click();
    await page.getByRole('heading', { name: 'Locked' }).waitFor();
    await page.getByLabel('Password').fill('four words by chance');
    await button(page, 'Open').click();
    await open(page, 'Bob');
    expect(await draftOf(page)).toBe('');
    await field(page).fill('while it is locked');
    await field(page).press('Escape');
    await open(page, 'Notes to myself');
    await button(page, 'Settings').first().click();
    await open(page, 'Bob');
    expect(await draftOf(page)).toBe('while it is locked');
    const stored = await page.evaluate(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }])',
    );
    for (const text of ['before the lock', 'while it is locked', 'my own laptop']) {
      expect(stored).not.toContain(text);
    }
    await page.close();
  });
});
