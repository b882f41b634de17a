/** What others are called: by this person's names for them, else by the nicknames that they chose (03 §7). */
import type { Contact } from '@posthouse/client';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hostileBodies } from '../../client/test/content/hostile-bodies.ts';
import { nameOf, titleOf } from '../src/parts/names.ts';
import type { Host } from '../src/state/host.ts';
import { befriend, beginAccount, inviteOf, type Office, openOffice, post } from './office.ts';
import { hasChromium, openBrowser, visit } from './support.ts';

const id = 'neo:860833102:NXV7ZhHiyM1aHXwpVsRZC6BwNFP2jghXAq';
const knows = (contact: Partial<Contact>) =>
  ({
    account: { id: 'neo:860833102:NSelf' },
    contacts: { value: [{ account: id, status: 'active', ...contact }] },
  }) as unknown as Host;

describe('a nickname cannot be taken for a name that this person gave', () => {
  test.each([
    [{}, 'NXV7Zh…hXAq'],
    [{ alias: 'Anna' }, 'Anna'],
    [{ alias: 'Anna', nickname: 'Bob' }, 'Anna'],
    [{ nickname: 'Anna' }, 'Anna (NXV7Zh…hXAq)'],
    [{ nickname: 'You' }, 'You (NXV7Zh…hXAq)'],
    [{ nickname: 'x'.repeat(64) }, `${'x'.repeat(24)}… (NXV7Zh…hXAq)`],
    [{ nickname: '\u202eA' }, '[U+202E]A (NXV7Zh…hXAq)'],
  ] as const)('%o is shown as %s', (contact: Partial<Contact>, name) => {
    expect(nameOf(knows(contact), id)).toBe(name);
    // The SDK's title is either of both.
    const title = contact.alias ?? contact.nickname ?? '';
    expect(titleOf(knows(contact), { kind: 'person', id, title })).toBe(name);
  });
});

test('03 §7: 200 hostile nicknames and local names take one line, and turn no direction', () => {
  const texts = [...hostileNames(), ...Object.values(hostileBodies).flat()];
  const nicknames = new Set(texts.map((each) => [...each].slice(0, 64).join('')).filter(Boolean));
  expect(nicknames.size).toBeGreaterThan(200);
  for (const nickname of nicknames) {
    for (const contact of [{ nickname }, { alias: nickname }]) {
      const name = nameOf(knows(contact), id);
      expect(name).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]/u);
      expect(name.length).toBeGreaterThan(0);
    }
    expect(nameOf(knows({ nickname }), id)).toMatch(/ \(NXV7Zh…hXAq\)$/);
  }
});

/** One character of each kind that is not shown, or changes what is next to it, in three places of a name. */
function hostileNames(): string[] {
  const codes = [0x00, 0x09, 0x0a, 0x0d, 0x1b, 0x7f, 0x85, 0xad, 0x300, 0x34f, 0x61c, 0x180e];
  const ranges = [
    [0x200b, 0x200f],
    [0x2028, 0x202e],
    [0x2060, 0x206f],
    [0xfe00, 0xfe0f],
    [0xe0061, 0xe0066],
  ] as const;
  for (const [from, to] of ranges) for (let code = from; code <= to; code += 1) codes.push(code);
  return codes.flatMap((code) => {
    const character = String.fromCodePoint(code);
    return [`${character}Anna`, `An${character}na`, `Anna${character}`];
  });
}

describe.skipIf(!hasChromium)('profiles of others', () => {
  let office: Office;
  let browser: Browser;
  beforeAll(async () => {
    office = await openOffice();
    browser = await openBrowser(office.origin);
  });
  afterAll(async () => {
    await browser?.close();
    await office?.[Symbol.asyncDispose]();
  });

  test('are read once of each who asks or is a contact, and again when it is opened; a name of this person takes their place', async () => {
    const bob = await office.newPerson();
    await bob.profiles.publish({ nickname: 'Anna', public_discovery: false });
    const { page, complaints } = await visit(browser, office.url);
    await page.evaluate(`globalThis.resolved = [];
      const { postMessage } = Worker.prototype;
      Worker.prototype.postMessage = function (request, ...more) {
        if (request.path?.join('.') === 'profiles.resolve') resolved.push(request.args[0]);
        return postMessage.call(this, request, ...more);
      };`);
    await beginAccount(page);
    await bob.contacts.join(await inviteOf(page));
    const shown = `Anna (${bob.id.split(':').at(-1)?.slice(0, 6)}…${bob.id.slice(-4)})`;
    await page.locator('.request strong').getByText(shown).waitFor();
    await page.getByRole('button', { name: 'Accept', exact: true }).click();
    const entry = page.locator('.entry').filter({ hasText: shown });
    await entry.click();
    await page.getByRole('heading', { name: shown }).waitFor();
    await bob.sync();
    for (const text of ['one', 'two', 'three']) {
      const [contact] = await bob.contacts.list();
      await bob.messages.post(contact?.account as string, { text });
      await bob.sync();
      await page.locator('.messages').getByText(text).waitFor();
    }
    expect(await page.evaluate('resolved')).toEqual([bob.id, bob.id]);
    await page.getByRole('button', { name: 'Person', exact: true }).click();
    await page.getByLabel('Name on your devices').fill('Anna');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByRole('heading', { name: 'Anna', exact: true }).waitFor();
    expect(complaints).toEqual([]);
  });

  test('03 §7: a new nickname is shown without a reload, in each tab, after its conversation was opened in one', async () => {
    const bob = await office.newPerson();
    await bob.profiles.publish({ nickname: 'Robert', public_discovery: false });
    const { page, complaints } = await visit(browser, office.url);
    await beginAccount(page);
    await bob.contacts.join(await inviteOf(page));
    await page.locator('.request strong').getByText('Robert (').waitFor();
    await page.getByRole('button', { name: 'Accept', exact: true }).click();
    await page.locator('.entry').filter({ hasText: 'Robert (' }).waitFor();
    const second = await page.context().newPage();
    await second.goto(office.url);
    await second.locator('.entry').filter({ hasText: 'Robert (' }).click();
    await second.getByRole('heading', { name: 'Robert (' }).waitFor();
    await bob.profiles.publish({ nickname: 'Bobby', public_discovery: false });
    await page.locator('.entry').filter({ hasText: 'Robert (' }).click();
    for (const tab of [page, second]) {
      await tab.locator('.entry').filter({ hasText: 'Bobby (' }).waitFor();
      await tab.getByRole('heading', { name: 'Bobby (' }).waitFor();
    }
    expect(complaints).toEqual([]);
  });

  test('03 §7: the own new name is in the settings of each tab; what is typed there stays', async () => {
    const { page, complaints } = await visit(browser, office.url);
    await beginAccount(page);
    const second = await page.context().newPage();
    await second.goto(office.url);
    const field = 'Name that others see';
    for (const tab of [page, second]) {
      await tab.getByRole('button', { name: 'Settings', exact: true }).first().click();
      await expect.poll(() => tab.getByLabel(field).isEnabled()).toBe(true);
    }
    const save = async (name: string) => {
      await page.getByLabel(field).fill(name);
      await page.getByRole('button', { name: 'Save', exact: true }).click();
    };
    await save('Ann');
    await expect.poll(() => second.getByLabel(field).inputValue()).toBe('Ann');
    await second.getByLabel(field).fill('Anna, still being typed');
    await save('Annie');
    await expect.poll(() => page.getByLabel(field).inputValue()).toBe('Annie');
    expect(await second.getByLabel(field).inputValue()).toBe('Anna, still being typed');
    expect(complaints).toEqual([]);
  });

  test('a group that is open has its name also if the list ends before it', async () => {
    const bob = await office.newPerson();
    const { page, complaints } = await visit(browser, office.url);
    await beginAccount(page);
    await befriend(page, bob, 'Bob');
    await page.getByRole('button', { name: 'New group', exact: true }).click();
    await page.getByLabel('Name', { exact: true }).fill('Chess');
    await page.getByRole('button', { name: 'Make the group', exact: true }).click();
    await page.getByRole('button', { name: 'Open the group', exact: true }).click();
    await page.getByRole('heading', { name: 'Chess' }).waitFor();
    await page.getByLabel('Write a message').fill('in the group');
    await page.getByLabel('Write a message').press('Enter');
    await page.locator('.own').getByText('in the group').waitFor();
    // As if there were many others: the list ends after one.
    await page.context().addInitScript(`
      const { postMessage } = Worker.prototype;
      Worker.prototype.postMessage = function (request, ...more) {
        if (request.path?.join('.') === 'conversations.list') request.args[0].limit = 1;
        return postMessage.call(this, request, ...more);
      };`);
    await page.reload();
    await post(bob, 'one', 'two');
    await page.locator('.entry').filter({ hasText: 'two' }).waitFor();
    expect(await page.locator('.entry').filter({ hasText: 'Chess' }).count()).toBe(0);
    await page.getByRole('heading', { name: 'Chess' }).waitFor();
    expect(complaints).toEqual([]);
  });
});
