/** QR codes of links: what is shown is the code of the link next to it, in Chromium on a real relay. */
import { correction, generate } from 'lean-qr';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { beginAccount, type Office, openOffice, toList } from './office.ts';
import { hasChromium, openBrowser, type Visitor, visit } from './support.ts';

const click = (page: Page, name: string) =>
  page.getByRole('button', { name, exact: true }).first().click();

/** The dark modules of the code that is shown under a name, as rows of 0 and 1. */
async function shownCode(page: Page, name: string): Promise<string[]> {
  const code = page.getByRole('img', { name: `QR code: ${name}`, exact: true });
  await code.scrollIntoViewIfNeeded();
  const path = (await code.locator('path').last().getAttribute('d')) ?? '';
  const [, , side = 0] = ((await code.getAttribute('viewBox')) ?? '').split(' ').map(Number);
  const size = side - 8;
  const rows = Array.from({ length: size }, () => Array.from({ length: size }, () => 0));
  for (const [, x, y, length] of path.matchAll(/M(\d+) (\d+)h(\d+)v1H\d+z/g)) {
    rows[Number(y)]?.fill(1, Number(x), Number(x) + Number(length));
  }
  return rows.map((row) => row.join(''));
}

function codeOf(text: string): string[] {
  const { size, get } = generate(text, { maxCorrectionLevel: correction.L });
  return Array.from({ length: size }, (_, y) =>
    Array.from({ length: size }, (_, x) => (get(x, y) ? 1 : 0)).join(''),
  );
}

describe.skipIf(!hasChromium)('a link to hand out', () => {
  let office: Office;
  let browser: Browser;
  let ann: Visitor;
  beforeAll(async () => {
    office = await openOffice();
    browser = await openBrowser(office.origin);
    ann = await visit(browser, office.url, { viewport: { width: 320, height: 640 } });
    await beginAccount(ann.page);
  });
  afterAll(async () => {
    await browser?.close();
    await office?.[Symbol.asyncDispose]();
  });

  async function isShown(names: { readonly link: string; readonly code: string }): Promise<void> {
    const { page, complaints } = ann;
    const link = await page.getByLabel(names.link, { exact: true }).last().inputValue();
    expect(link.startsWith(`${office.url}#`)).toBe(true);
    expect(await shownCode(page, names.code)).toEqual(codeOf(link));
    const { MESSENGER_PICTURES: pictures } = process.env;
    if (pictures !== undefined) {
      await page.screenshot({ path: `${pictures}/code-${names.code.replaceAll(' ', '-')}.png` });
    }
    const sideways = 'document.documentElement.scrollWidth > document.documentElement.clientWidth';
    expect(await page.evaluate(sideways)).toBe(false);
    expect(complaints).toEqual([]);
  }

  test('an invite is shown as its QR code', async () => {
    const { page } = ann;
    await click(page, 'Add a person');
    await click(page, 'Make an invite');
    await isShown({ link: 'Write to me', code: 'Your invite' });
  });

  test('05 §8: an invite to a group is shown as its QR code', async () => {
    const { page } = ann;
    await toList(page);
    await click(page, 'New group');
    await page.getByLabel('Name', { exact: true }).fill('Chess');
    await click(page, 'Make the group');
    await click(page, 'Make a link');
    await isShown({ link: 'Invitation to a group', code: 'Invitation to a group' });
  });

  test('06 §8: the link of a channel is shown as its QR code', async () => {
    const { page } = ann;
    await toList(page);
    await click(page, 'New channel');
    await page.getByLabel('Name', { exact: true }).fill('News');
    await click(page, 'Make the channel');
    await isShown({ link: 'Link to this channel', code: 'Link to this channel' });
  });
});
