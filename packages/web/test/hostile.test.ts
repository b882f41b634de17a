/** 04 §8: what strangers write, from a real sender into the messenger: texts, names and notes. */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hostileBodies } from '../../client/test/content/hostile-bodies.ts';
import { befriend, beginAccount, inviteOf, type Office, openOffice } from './office.ts';
import { hasChromium, openBrowser, type Visitor, visit } from './support.ts';

const zalgo = `Z${'\u0300\u0301\u0302\u0336'.repeat(30)}`;
const names = [
  '\u202Egnp.exe',
  zalgo,
  '<img src=x onerror=alert(1)>',
  '\u2066\u2067\u200F\u061C a \u00AD\u200B',
  'x'.repeat(64),
  'a\nb\r\u2028c',
  '__proto__',
];
const lines = Array.from({ length: 1_000 }, (_, index) => `${index}`).join('\n');

describe.skipIf(!hasChromium)('texts of attackers', () => {
  let office: Office;
  let browser: Browser;
  let ann: Visitor;
  const seen: string[] = [];
  beforeAll(async () => {
    office = await openOffice();
    browser = await openBrowser(office.origin);
    ann = await visit(browser, office.url, { viewport: { width: 320, height: 640 } });
    const { page } = ann;
    page.on('dialog', (dialog) => void dialog.dismiss().then(() => seen.push('a dialog')));
    page.on('popup', (popup) => seen.push(`a window: ${popup.url()}`));
    page.context().on('request', (request) => {
      if (!request.url().startsWith(office.origin)) seen.push(`requested ${request.url()}`);
    });
    page.on('framenavigated', (frame) => {
      if (!frame.url().startsWith(office.url)) seen.push(`navigated to ${frame.url()}`);
    });
  });
  afterAll(async () => {
    await browser?.close();
    await office?.[Symbol.asyncDispose]();
  });

  const width = `Math.max(...['html', 'body', 'main', '.pane', '.messages']
    .flatMap((selector) => [...document.querySelectorAll(selector)])
    .map((each) => each.scrollWidth - each.clientWidth))`;

  test('200 bodies are shown: no request, no navigation, no script, and nothing wider than 320 px', async () => {
    const { page } = ann;
    const bob = await office.newPerson();
    await beginAccount(page);
    await befriend(page, bob, 'Bob');
    const to = (await bob.contacts.list())[0]?.account as string;
    const bodies = [...Object.values(hostileBodies).flat(), lines, zalgo.repeat(100)];
    let posted = 0;
    for (const text of bodies) {
      // What is no text of the protocol, too long for example, does not leave a client.
      const post = bob.messages.post(to, { text, contentType: 'text/markdown' });
      posted += await post.then(
        () => 1,
        () => 0,
      );
    }
    expect(posted).toBeGreaterThan(200);
    await bob.sync();
    await bob.messages.post(to, { text: 'the last one' });
    await bob.sync();
    await page.locator('.entry').filter({ hasText: 'Bob' }).click();
    await page.locator('.messages').getByText('the last one').waitFor({ timeout: 100_000 });
    const older = page.getByRole('button', { name: 'Earlier messages' });
    for (let shown = 50; shown < posted; shown += 50) {
      await older.click();
      await expect.poll(() => page.locator('.messages article').count()).toBeGreaterThan(shown);
      expect(await page.evaluate(width)).toBeLessThanOrEqual(1);
    }
    expect(await page.locator('.messages article').count()).toBe(posted + 1);
    // Each link names the host that it leads to, and leads to no script.
    const links = await page
      .locator('.messages a')
      .evaluateAll((all) =>
        all.map((each) => [each.getAttribute('href') ?? '', each.nextElementSibling?.textContent]),
      );
    expect(links.length).toBeGreaterThan(5);
    for (const [href, host] of links) {
      expect(href).toMatch(/^(?:https?|mailto):/);
      expect(host).toMatch(/^\(.+\)$/);
    }
    expect(seen).toEqual([]);
  }, 150_000);

  test('names and notes of strangers stay in their place', async () => {
    const { page } = ann;
    const invite = await inviteOf(page);
    for (const name of names) {
      const stranger = await office.newPerson();
      await stranger.profiles
        .publish({ nickname: name, public_discovery: true })
        .catch(() => undefined);
      await stranger.contacts.join(invite, { note: `${name} ${lines.slice(0, 400)}` });
    }
    const requests = page.locator('.request');
    await expect.poll(() => requests.count()).toBe(names.length);
    expect(await page.evaluate(width)).toBeLessThanOrEqual(1);
    // What turns the direction of other text is written out.
    const texts = await requests.allTextContents();
    expect(texts.join()).toContain('[U+202E]');
    expect(texts.join()).not.toMatch(/[\u202A-\u202E\u2066-\u2069]/);
    for (let left = names.length; left > 0; left -= 1) {
      await page.getByRole('button', { name: 'Accept', exact: true }).first().click();
      await expect.poll(() => requests.count()).toBe(left - 1);
    }
    expect(await page.evaluate(width)).toBeLessThanOrEqual(1);
    for (const text of await page.locator('.entry').allTextContents()) {
      expect(text).not.toMatch(/[\u202A-\u202E\u2066-\u2069]/);
    }
    expect(seen).toEqual([]);
    expect(ann.complaints).toEqual([]);
  });
});
