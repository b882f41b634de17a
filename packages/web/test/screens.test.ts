/**
 * Each screen of the messenger, in Chromium: no finding of axe-core that is serious or critical, in light and dark;
 * no scrolling sideways at 320 px and at 200 %; nothing that moves if a person wants less motion. With
 * `MESSENGER_PICTURES=folder`, pictures of all of them are kept there.
 */
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { AxeResults } from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pageOf } from '../../client/test/web/support/chromium.ts';
import { AnyPage } from './any-page.ts';
import { type Office, openOffice, toList } from './office.ts';
import {
  type Addresses,
  faultsOfLayout,
  makePeople,
  makeRooms,
  screens,
  showScreen,
  widths,
} from './screens.ts';
import { hasChromium, openBrowser, type Visitor, visit } from './support.ts';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const { MESSENGER_PICTURES: pictures } = process.env;

const click = (page: Page, name: string) =>
  page.getByRole('button', { name, exact: true }).first().click();

async function openConversation(page: Page, name: string): Promise<void> {
  await page.locator('.entry').filter({ hasText: name }).first().click();
  await page.locator('.messages article').first().waitFor();
}

/** Runs axe-core in the page; what is serious, by rule and place. */
async function findings(page: Page): Promise<string[]> {
  await page.evaluate(`globalThis.axe ?? (() => { ${axe} })()`);
  const { violations } = (await page.evaluate('axe.run()')) as AxeResults;
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
}

/** Checks what is shown, in each width and colour scheme. */
async function check(page: Page, name: string): Promise<void> {
  const wrong: unknown[] = [];
  for (const scheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' });
    for (const [size, width] of Object.entries(widths)) {
      await page.setViewportSize({ width, height: 800 });
      const faults = (await page.evaluate(faultsOfLayout)) as string[];
      wrong.push(...faults.map((each) => [scheme, size, each]));
      if (pictures !== undefined && (scheme === 'light' || size !== 'double')) {
        mkdirSync(pictures, { recursive: true });
        await page.screenshot({ path: join(pictures, `${name}-${size}-${scheme}.png`) });
      }
      if (size === 'double' && scheme === 'dark') continue;
      wrong.push(...(await findings(page)).map((each) => [scheme, size, each]));
    }
  }
  await page.setViewportSize({ width: widths.wide, height: 800 });
  expect(wrong).toEqual([]);
}

describe.skipIf(!hasChromium)('each screen', () => {
  let office: Office;
  let browser: Browser;
  let ann: Visitor;
  let any: AnyPage;
  let addresses: Addresses;
  beforeAll(async () => {
    office = await openOffice();
    browser = await openBrowser(office.origin);
    ann = await visit(browser, office.url);
    any = new AnyPage(pageOf(ann.page));
  });
  afterAll(async () => {
    await browser?.close();
    await office?.[Symbol.asyncDispose]();
  });

  test('welcome', async () => {
    await ann.page.getByRole('button', { name: 'New account' }).waitFor();
    for (const each of await ann.page.locator('summary').all()) await each.click();
    await check(ann.page, 'welcome');
  });

  test('with people, messages and a request', async () => {
    addresses = await makeRooms(office);
    await makePeople(any, office);
  });

  test('all is done with the keyboard alone', async () => {
    const { page } = ann;
    await toList(page);
    const focused = () =>
      page.evaluate('document.activeElement.textContent || document.activeElement.ariaLabel');
    // The switcher: search, and Enter opens the first that is found.
    await page.keyboard.press('Control+k');
    await page.keyboard.type('bo');
    await page.keyboard.press('Enter');
    await expect.poll(focused).toBe('Bob');
    await page.keyboard.press('Escape');
    await expect.poll(focused).toBe('The post office');
    await page.keyboard.press('Control+k');
    await page.keyboard.press('Control+a');
    await page.keyboard.press('Delete');
    await page.keyboard.press('ArrowDown');
    const first = await focused();
    await page.keyboard.press('ArrowDown');
    expect(await focused()).not.toBe(first);
    await page.keyboard.press('ArrowUp');
    expect(await focused()).toBe(first);
    await page.keyboard.press('Enter');
    await page.locator('.messages article').first().waitFor();
    // Each control of the conversation is reached with Tab, and each shows that it has the focus.
    for (let steps = 0; (await focused()) !== 'Write a message'; steps += 1) {
      expect(steps).toBeLessThan(40);
      await page.keyboard.press('Tab');
      expect(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')).not.toBe(
        'none',
      );
    }
    await page.keyboard.type('by keyboard');
    await page.keyboard.press('Enter');
    await page.locator('.own').getByText('by keyboard').waitFor();
    expect(await focused()).toBe('Write a message');
  });

  test.each(['wide', 'narrow'] as const)(
    '0045: what is typed right after Ctrl+K is searched for, %s, whatever was searched before',
    async (size) => {
      const { page } = ann;
      await page.setViewportSize({ width: widths[size], height: 800 });
      await toList(page);
      await openConversation(page, 'Bob');
      // Keys are tasks: what has the focus when the first one ends gets the next one.
      const focused = await page.evaluate(`(async () => {
        const keys = { key: 'k', ctrlKey: true, bubbles: true, cancelable: true };
        document.activeElement.dispatchEvent(new KeyboardEvent('keydown', keys));
        for (let turns = 0; turns < 10; turns += 1) await undefined;
        return document.activeElement.type;
      })()`);
      expect(focused).toBe('search');
      await Promise.all([page.keyboard.type('ли'), page.keyboard.press('Control+k')]);
      await Promise.all([page.keyboard.type('bo'), page.keyboard.press('Enter')]);
      await page.getByRole('heading', { name: 'Bob' }).waitFor();
      await page.setViewportSize({ width: widths.wide, height: 800 });
      await toList(page);
      await page.getByLabel('Search').fill('');
    },
  );

  test.each(screens)('$name', async (screen) => {
    await showScreen(any, screen, addresses);
    await check(ann.page, screen.name);
  });

  test('of a removed device', async () => {
    const { page } = ann;
    await page.evaluate('navigator.serviceWorker.ready.then(() => 0)');
    // Without a network, the relay cannot say otherwise.
    await page.context().setOffline(true);
    await toList(page);
    await page.reload();
    await page.getByText('Not connected').waitFor();
    await page.evaluate(`localStorage.setItem('posthouse.ending', 'device_unknown')`);
    await page.reload();
    await click(page, 'What now?');
    await page.getByRole('heading', { name: 'What is still here' }).waitFor();
    await page.locator('summary').filter({ hasText: 'Join again' }).click();
    await check(page, 'ended');
    await page.context().setOffline(false);
  });

  test('no page complained', () => {
    expect(ann.complaints).toEqual([]);
  });
});
