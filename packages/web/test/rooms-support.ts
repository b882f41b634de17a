/** A relay with the messenger, and people of it who know each other. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Relay } from '@posthouse/relay';
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { builtMessenger } from './office.ts';
import { openBrowser, type Visitor, visit } from './support.ts';

export interface Messenger extends AsyncDisposable {
  readonly url: string;
  readonly browser: Browser;
}

/** Builds the messenger, starts a relay that serves it, and opens a browser that trusts it. */
export async function startMessenger(): Promise<Messenger> {
  const folder = mkdtempSync(join(tmpdir(), 'messenger-'));
  const relay = await Relay.start({
    ...{ dev: true, data: join(folder, 'relay'), listen: '127.0.0.1:0', log: 'silent' },
    ...{ name: 'The post office', web: { folder: await builtMessenger() } },
  });
  const [endpoint = ''] = relay.https;
  const browser = await openBrowser(new URL(endpoint).origin);
  return {
    url: new URL('/app/', endpoint).href,
    browser,
    async [Symbol.asyncDispose]() {
      await browser.close();
      await relay[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true });
    },
  };
}

/** A small dark screen in German: what is tight there shows. */
export const narrowGerman: BrowserContextOptions = {
  ...{ locale: 'de-DE', colorScheme: 'dark', viewport: { width: 320, height: 640 } },
};

export const button = (page: Page, name: string): Locator =>
  page.getByRole('button', { name, exact: true });
export const entry = (page: Page, title: string): Locator =>
  page.locator('.entry').filter({ has: page.locator('.title', { hasText: title }) });
export const line = (page: Page, text: string): Locator =>
  page.locator('.messages').getByText(text).first();
/** A part that opens: its summary. */
export const summary = (page: Page | Locator, text: string): Locator =>
  page.locator('summary').filter({ hasText: text }).first();

/** Keeps a picture of a screen, if the run asks for them. */
export async function keep(page: Page, name: string): Promise<void> {
  const { MESSENGER_PICTURES: pictures } = process.env;
  if (pictures === undefined) return;
  await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
}

/** Opens the messenger with a new account, and leaves the list on the screen. */
export async function newPerson(
  { browser, url }: Pick<Messenger, 'browser' | 'url'>,
  options: BrowserContextOptions = {},
): Promise<Visitor> {
  const visitor = await visit(browser, url, options);
  await visitor.page.getByRole('button', { name: /New account|Neues Konto/ }).click();
  await visitor.page.locator('.entry').first().waitFor();
  return visitor;
}

/** Makes two people contacts, who know each other by these names. */
export async function introduce(
  [one, oneName]: readonly [Visitor, string],
  [other, otherName]: readonly [Visitor, string],
): Promise<void> {
  await one.page.getByRole('button', { name: /^(Add a person|Person hinzufügen)$/ }).click();
  await one.page.getByRole('button', { name: /^(Make an invite|Einladung erstellen)$/ }).click();
  const link = await one.page.locator('.handout textarea').inputValue();
  await other.page.goto(link);
  await other.page.getByLabel(/Name on your devices|Name auf deinen Geräten/).fill(oneName);
  await other.page.getByRole('button', { name: /^(Ask|Anfragen)$/ }).click();
  await one.page.keyboard.press('Escape');
  await one.page.locator('.request input').fill(otherName);
  await one.page.getByRole('button', { name: /^(Accept|Annehmen)$/ }).click();
  await one.page.locator('.entry').filter({ hasText: otherName }).waitFor();
  await other.page.locator('.entry').filter({ hasText: oneName }).waitFor();
}
