/** Attachments in the messenger, in Chromium, on real relays: one that stores them, and one that does not. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Relay } from '@posthouse/relay';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { builtMessenger } from './office.ts';
import { hasChromium, openBrowser, openBrowserWith, type Visitor, visit } from './support.ts';
import { openWire, type Wire } from './wire.ts';

const folder = mkdtempSync(join(tmpdir(), 'messenger-'));
/** A picture of one red pixel. */
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==',
  'base64',
);
const maxBytes = 8_192;
const relays: Relay[] = [];
let browser: Browser;

async function startRelay(name: string, blobs: object): Promise<string> {
  const relay = await Relay.start({
    ...{ dev: true, data: join(folder, name), listen: '127.0.0.1:0', log: 'silent', name },
    ...{ web: { folder: await builtMessenger() }, blobs },
  });
  relays.push(relay);
  return new URL('/app/', relay.https[0]).href;
}

let url: string;
let urlWithout: string;
/** Of one that takes large files, at the end of a wire. */
let urlOfLarge: string;
let wire: Wire;
beforeAll(async () => {
  if (!hasChromium) return;
  url = await startRelay('The post office', {
    ...{ folder: join(folder, 'blobs'), maxBytes, accountBytes: 65_536 },
  });
  urlWithout = await startRelay('A small one', {});
  urlOfLarge = await startRelay('A large one', {
    ...{ folder: join(folder, 'large'), maxBytes: 33_554_432, accountBytes: 67_108_864 },
  });
  wire = await openWire(new URL(urlOfLarge).origin);
  browser = await openBrowser(...[url, urlWithout].map((each) => new URL(each).origin));
});
afterAll(async () => {
  await browser?.close();
  await wire?.[Symbol.asyncDispose]();
  for (const relay of relays) await relay[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

async function keep(page: Page, name: string): Promise<void> {
  const { MESSENGER_PICTURES: pictures } = process.env;
  if (pictures !== undefined) await page.screenshot({ path: join(pictures, `${name}.png`) });
}

/** A new account's notes: every account can write to itself. */
async function notesOf(
  address: string,
  options: object = {},
  inBrowser = browser,
): Promise<Visitor> {
  const visitor = await visit(inBrowser, address, options);
  const { page } = visitor;
  await button(page, 'New account').click();
  await page.locator('.entry').filter({ hasText: 'Notes to myself' }).click();
  await button(page, 'Attach files').waitFor();
  return visitor;
}

const file = (name: string, mimeType: string, buffer: Buffer) => ({ name, mimeType, buffer });

/** Does to the chat what a person does by dropping a file or pasting one. */
async function give(page: Page, kind: 'drop' | 'paste', name: string): Promise<void> {
  await page.evaluate(
    `(() => {
      const data = new DataTransfer();
      data.items.add(new File(['text of ${name}'], '${name}', { type: 'text/plain' }));
      const event = '${kind}' === 'drop'
        ? new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true })
        : new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true });
      document.querySelector('.composer textarea').dispatchEvent(event);
    })()`,
  );
}

describe.skipIf(!hasChromium)('attachments (04 §9, §10)', () => {
  let ann: Visitor;

  test('files are picked, dropped and pasted, stored before they can be sent, and one is removed', async () => {
    ann = await notesOf(url);
    const { page } = ann;
    await page
      .locator('.attach input')
      .setInputFiles([
        file('holiday.png', 'image/png', png),
        file('page.html', 'text/html', Buffer.from('<script>alert(1)</script>')),
      ]);
    await give(page, 'drop', 'dropped.txt');
    await give(page, 'paste', 'pasted.txt');
    await expect.poll(() => page.locator('.attach li').getByText('Ready').count()).toBe(4);
    await page.locator('.attach img').waitFor();
    await button(page, 'Remove pasted.txt').click();
    await keep(page, 'attaching');
    await page.getByLabel('Write a message').fill('three files');
    await button(page, 'Send').click();
    await page.locator('.own').getByText('three files').waitFor();
    await expect.poll(() => page.locator('.attached li').count()).toBe(3);
    expect(await page.locator('.attach li').count()).toBe(0);
  });

  test('a picture is shown when the person wants it; a page is only saved, with a name of no meaning', async () => {
    const { page } = ann;
    await button(page, 'Show').click();
    const picture = page.locator('.attached img');
    await expect
      .poll(() =>
        picture.evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth),
      )
      .toBe(1);
    expect(await picture.getAttribute('src')).toMatch(/^blob:/);
    await keep(page, 'attachment');
    const item = page.locator('.attached li').filter({ hasText: 'File 2' });
    expect(await item.getByRole('button', { name: 'Show' }).count()).toBe(0);
    const downloading = page.waitForEvent('download');
    await item.getByRole('button', { name: 'Save' }).click();
    const saved = await downloading;
    expect(saved.suggestedFilename()).toBe('attachment-2.bin');
    expect(readFileSync(await saved.path()).equals(Buffer.from('<script>alert(1)</script>'))).toBe(
      true,
    );
  });

  test('what is too large or empty is said before anything is stored; sending waits for it', async () => {
    const { page } = ann;
    await page
      .locator('.attach input')
      .setInputFiles([
        file('large.bin', '', Buffer.alloc(maxBytes)),
        file('empty.txt', 'text/plain', Buffer.alloc(0)),
      ]);
    await page.getByText('Larger than 8 kB').waitFor();
    await page.getByText('The file is empty').waitFor();
    expect(await button(page, 'Send').isDisabled()).toBe(true);
    await keep(page, 'attachment-faults');
    for (const name of ['large.bin', 'empty.txt']) await button(page, `Remove ${name}`).click();
    expect(await button(page, 'Send').isDisabled()).toBe(false);
  });

  test('an upload that fails is tried again, and one under way is cancelled; so is a download', async () => {
    const { page } = ann;
    const context = page.context();
    await context.route('**/blobs', (route) => route.abort());
    await page
      .locator('.attach input')
      .setInputFiles([file('later.txt', 'text/plain', Buffer.from('later'))]);
    await button(page, 'Try again').waitFor();
    await context.unroute('**/blobs');
    const released = Promise.withResolvers<void>();
    await context.route('**/blobs', async (route) => {
      await released.promise;
      await route.continue().catch(() => undefined);
    });
    await button(page, 'Try again').click();
    await page.getByText('Encrypting and storing').waitFor();
    await page.locator('.attach progress').waitFor();
    await keep(page, 'attachment-progress');
    await button(page, 'Remove later.txt').click();
    expect(await page.locator('.attach li').count()).toBe(0);
    released.resolve();
    await context.unroute('**/blobs');
    const held = Promise.withResolvers<void>();
    await context.route('**/blobs/*', async (route) => {
      await held.promise;
      await route.continue().catch(() => undefined);
    });
    const item = page.locator('.attached li').filter({ hasText: 'File 3' });
    await item.getByRole('button', { name: 'Save' }).click();
    await item.locator('progress').waitFor();
    await item.getByRole('button', { name: 'Cancel' }).click();
    await item.getByRole('button', { name: 'Save' }).waitFor();
    expect(await item.getByRole('alert').count()).toBe(0);
    held.resolve();
    await context.unroute('**/blobs/*');
  });

  test('the bar of an upload grows with what is sent, never falls, and says it in numbers', async () => {
    await using large = await openBrowserWith([wire.arg], urlOfLarge);
    const { page } = await notesOf(urlOfLarge, {}, large);
    await page.evaluate(`globalThis.shown = [];
      new MutationObserver(() => {
        const bar = document.querySelector('.attach progress[value]');
        if (bar !== null && shown.at(-1) !== bar.value) shown.push(bar.value);
      }).observe(document, { subtree: true, childList: true, attributes: true });`);
    const shown = async () => (await page.evaluate('shown')) as number[];
    wire.holdAfter(2_000_000);
    // By its path: handing over 25 MB takes longer than a busy machine has.
    const film = join(folder, 'film.mp4');
    writeFileSync(film, Buffer.alloc(25_000_000));
    await page.locator('.attach input').setInputFiles(film);
    await expect.poll(shown).not.toEqual([]);
    const [first = 1] = await shown();
    expect(first).toBeLessThan(1);
    await page
      .locator('.attach .file')
      .getByText(/^ ?\d+%$/)
      .waitFor();
    await keep(page, 'attachment-progress-in-numbers');
    wire.release();
    await page.locator('.attach li').getByText('Ready').waitFor();
    const all = await shown();
    expect(all).toEqual(all.toSorted((a, b) => a - b));
    expect(all.at(-1)).toBe(1);
  });

  test('a file that is no longer stored, or that was altered, is not opened', async () => {
    const { page } = ann;
    const context = page.context();
    const item = page.locator('.attached li').filter({ hasText: 'File 3' });
    await context.route('**/blobs/*', (route) => route.fulfill({ status: 404 }));
    await item.getByRole('button', { name: 'Save' }).click();
    await item.getByText('no longer stored').waitFor();
    await context.unroute('**/blobs/*');
    await context.route('**/blobs/*', (route) => route.fulfill({ status: 200, body: 'another' }));
    await item.getByRole('button', { name: 'Save' }).click();
    await item.getByText('not what was sent').waitFor();
    await context.unroute('**/blobs/*');
  });

  test('a relay that stores none says so before a file is picked', async () => {
    const { page, complaints } = await notesOf(urlWithout, {
      viewport: { width: 320, height: 640 },
    });
    await button(page, 'Attach files').click();
    await page.getByText('Your relay stores no attachments').waitFor();
    await keep(page, 'no-attachments-narrow');
    expect(complaints).toEqual([]);
  });
});
