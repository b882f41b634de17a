/** Forms and what is handed on: nothing is sent twice, lost by a slow answer, or said in a language of developers. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Account } from '@posthouse/client';
import { Relay } from '@posthouse/relay';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { beginAccount, builtMessenger, type Office, openOffice, toList } from './office.ts';
import { hasChromium, openBrowser, type Visitor, visit } from './support.ts';

/** A point of P-256: the key of no account here. */
const someKey = 'A2sX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKW';
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

/**
 * Holds calls to the worker by the name of their method until `release` lets all of them go, or the one at a place;
 * counts them.
 */
const holding = `
  globalThis.held = [];
  globalThis.calls = [];
  globalThis.hold = '';
  const { postMessage } = Worker.prototype;
  Worker.prototype.postMessage = function (request, ...more) {
    const name = request.path?.join('.');
    calls.push(name);
    const go = () => postMessage.call(this, request, ...more);
    if (name === hold) held.push(go);
    else go();
  };
  globalThis.release = (index) =>
    (index === undefined ? held.splice(0) : held.splice(index, 1)).forEach((go) => go());
  globalThis.shared = [];
  navigator.share = async (what) => { shared.push(what); };`;

describe.skipIf(!hasChromium)('forms', () => {
  let office: Office;
  let browser: Browser;
  let ann: Visitor;
  let bob: Account;
  beforeAll(async () => {
    office = await openOffice();
    browser = await openBrowser(office.origin);
    bob = await office.newPerson();
    ann = await visit(browser, office.url);
    await ann.page.context().addInitScript(holding);
    await ann.page.reload();
    await beginAccount(ann.page);
  });
  afterAll(async () => {
    await browser?.close();
    await office?.[Symbol.asyncDispose]();
  });

  const count = (page: Page, name: string) =>
    page.evaluate(`calls.filter((each) => each === '${name}').length`);
  const linkOf = async (person: Account) =>
    `${office.url}#invite=${encodeURIComponent((await person.contacts.invite()).text)}`;

  test('a link is shared as a link; a request of a device as text, which no relay gets as an address', async () => {
    await button(ann.page, 'Add a person').click();
    await button(ann.page, 'Make an invite').click();
    await button(ann.page, 'Share').click();
    const link = await ann.page.getByLabel('Write to me').inputValue();
    expect(await ann.page.evaluate('shared')).toEqual([{ title: 'Write to me', url: link }]);
    const { page } = await visit(browser, office.url);
    await page.context().addInitScript(holding);
    await page.goto(`${office.url}#device=${someKey}`);
    await page.reload();
    const request = page.getByLabel('Request of the new device', { exact: true });
    await request.waitFor();
    await button(page, 'Share').click();
    const text = await request.inputValue();
    expect(await page.evaluate('shared')).toEqual([{ title: 'Request of the new device', text }]);
    await page.context().close();
  });

  test('if the browser refuses to copy, the text is selected', async () => {
    const { page } = ann;
    await page.evaluate(`navigator.clipboard.writeText = async () => { throw new Error('no'); }`);
    await button(page, 'Copy').click();
    const selected = `(() => { const { value, selectionStart, selectionEnd } = document.activeElement;
      return value?.slice(selectionStart, selectionEnd); })()`;
    const link = await page.getByLabel('Write to me').inputValue();
    await expect.poll(() => page.evaluate(selected)).toBe(link);
    expect(await button(page, 'Copied').count()).toBe(0);
  });

  test('an invite that is opened while another one is read is the one that is asked, once', async () => {
    const { page } = ann;
    await page.evaluate(`hold = 'contacts.preview'`);
    await page.goto(await linkOf(await office.newPerson()));
    await expect.poll(() => page.evaluate('held.length')).toBe(1);
    await page.goto(await linkOf(bob));
    await expect.poll(() => page.evaluate('held.length')).toBe(2);
    // The later one is answered first.
    await page.evaluate('release(1)');
    const shown = page.getByTitle(bob.id);
    await shown.waitFor();
    await page.evaluate('release()');
    await page.evaluate(`hold = 'contacts.join'`);
    await page.evaluate(`for (let i = 0; i < 3; i += 1)
      document.querySelector('section[aria-labelledby=their-invite] form').requestSubmit()`);
    await expect.poll(() => button(page, 'Ask').isDisabled()).toBe(true);
    expect(await shown.count()).toBe(1);
    await page.evaluate('release()');
    await page.getByText('Your request was sent.').waitFor();
    expect(await count(page, 'contacts.join')).toBe(1);
    await page.evaluate(`hold = ''`);
    await expect
      .poll(async () => {
        await bob.sync();
        return (await bob.contacts.list()).length;
      })
      .toBe(1);
  });

  test('a file that is pasted right before Enter goes with the message', async () => {
    const { page } = ann;
    await toList(page);
    await page.locator('.entry').filter({ hasText: 'Notes to myself' }).click();
    await button(page, 'Attach files').waitFor();
    await page.evaluate(`hold = 'home.relayId'`);
    await page.getByLabel('Write a message').fill('with a file');
    await page.evaluate(`(() => {
      const data = new DataTransfer();
      data.items.add(new File(['text'], 'a.txt', { type: 'text/plain' }));
      const area = document.querySelector('.composer textarea');
      area.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
      area.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }));
    })()`);
    expect(await page.getByLabel('Write a message').inputValue()).toBe('with a file');
    expect(await page.locator('.own').count()).toBe(0);
    await page.evaluate(`hold = ''; release()`);
    await button(page, 'Remove a.txt').click();
    await page.getByLabel('Write a message').fill('');
  });

  test('the name that others see can be changed after it was read, not before', async () => {
    const { page } = ann;
    await page.evaluate(`hold = 'profiles.resolve'`);
    await button(page, 'Settings').click();
    const field = page.getByLabel('Name that others see');
    await field.waitFor();
    expect(await field.isDisabled()).toBe(true);
    await page.evaluate(`hold = ''; release()`);
    await field.fill('Ann');
    await button(page, 'Save').click();
    await expect.poll(() => count(page, 'profiles.publish')).toBe(1);
    expect(ann.complaints).toEqual([]);
  });
});

describe.skipIf(!hasChromium)('faults', () => {
  const folder = mkdtempSync(join(tmpdir(), 'messenger-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  test('what a relay refuses is said in the language of the person', async () => {
    await using relay = await Relay.start({
      ...{ dev: true, data: join(folder, 'relay'), listen: '127.0.0.1:0', log: 'silent' },
      ...{ registration: 'invite', web: { folder: await builtMessenger() } },
    });
    const [endpoint = ''] = relay.https;
    const browser = await openBrowser(new URL(endpoint).origin);
    const german = { locale: 'de-DE' };
    const { page } = await visit(browser, new URL('/app/', endpoint).href, german);
    await button(page, 'Neues Konto').click();
    const fault = page.getByRole('alert').getByText('nimmt gerade kein neues Konto an');
    await fault.waitFor();
    // The message itself is for experts, and closed.
    expect(await page.getByRole('alert').first().innerText()).toMatch(/code\.\s+Einzelheiten$/);
    await browser.close();
  });
});
