/** What people do with groups in the messenger, in Chromium, on a real relay. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  button,
  entry,
  introduce,
  keep,
  line,
  type Messenger,
  narrowGerman,
  newPerson,
  startMessenger,
  summary,
} from './rooms-support.ts';
import { hasChromium, type Visitor, visit } from './support.ts';

let messenger: Messenger;
beforeAll(async () => {
  if (hasChromium) messenger = await startMessenger();
});
afterAll(async () => await messenger?.[Symbol.asyncDispose]());

/** A member in the list of the group's screen. */
const member = (page: Page, name: string) => page.locator('.people > li').filter({ hasText: name });

/** Opens the group's conversation from the list. */
async function openGroup(page: Page, name: string): Promise<void> {
  await page.keyboard.press('Escape');
  await entry(page, name).click();
  await page.locator('.composer').waitFor();
}

/** Opens the screen with members and settings. */
async function manage(page: Page, name: string): Promise<void> {
  await openGroup(page, name);
  await page.locator('.chat header').getByRole('button').last().click();
  await page.locator('#members').waitFor();
}

describe.skipIf(!hasChromium)('a group of three', () => {
  let ann: Visitor;
  let bob: Visitor;
  let carol: Visitor;
  let link: string;

  test('a group is founded with a name, what it is about and who may invite', async () => {
    ann = await newPerson(messenger);
    bob = await newPerson(messenger, narrowGerman);
    await introduce([ann, 'Ann'], [bob, 'Bob']);
    const { page } = ann;
    await button(page, 'New group').click();
    await page.getByLabel('Name', { exact: true }).fill('Chess <b>club</b>');
    await page.getByLabel('What it is about').fill('Tuesdays at eight');
    await page.getByLabel('Who may invite others').selectOption('members_shareable');
    await keep(page, 'group-new');
    await button(page, 'Make the group').click();
    await page.getByRole('heading', { name: 'Chess <b>club</b>' }).waitFor();
    await keep(page, 'group-founded');
    // No ID is in an address.
    expect(page.url()).toBe(`${messenger.url}#/group`);
  });

  test('a contact is invited by a message, asks to join, and is let in', async () => {
    const { page } = ann;
    await page.getByLabel('Invite a contact').selectOption({ label: 'Bob' });
    await button(page, 'Invite a contact').click();
    await page.getByText('The invitation was sent').waitFor();
    await bob.page.getByText('Ann lädt dich in eine Gruppe ein').waitFor();
    await keep(bob.page, 'group-invited-dark-narrow');
    await button(bob.page, 'Ansehen').click();
    await bob.page.getByText('Tuesdays at eight').waitFor();
    await keep(bob.page, 'group-invitation-dark-narrow');
    await button(bob.page, 'Um Aufnahme bitten').click();
    await bob.page.locator('.request').getByText('club</b>: du hast um Aufnahme').waitFor();
    await page.getByText('Asks to join').waitFor();
    await keep(page, 'group-request');
    await button(page, 'Let in').click();
    await member(page, 'Bob').waitFor();
    await entry(bob.page, 'Chess').waitFor();
    await bob.page.locator('.request').waitFor({ state: 'detached' });
  });

  test('members write, answer, and see who wrote what and what happened', async () => {
    await openGroup(ann.page, 'Chess');
    await ann.page.getByLabel('Write a message').fill('Who brings a clock?');
    await ann.page.getByLabel('Write a message').press('Enter');
    await entry(bob.page, 'Chess').getByText('1 ungelesene Nachricht', { exact: true }).waitFor();
    await entry(bob.page, 'Chess').getByText('Ann: Who brings a clock?').waitFor();
    await openGroup(bob.page, 'Chess');
    await line(bob.page, 'Who brings a clock?').waitFor();
    await line(bob.page, 'Die Gruppe wurde angelegt').waitFor();
    await button(bob.page, 'Antworten').last().click();
    await bob.page.getByLabel('Nachricht schreiben').fill('Ich!');
    await bob.page.getByLabel('Nachricht schreiben').press('Enter');
    await ann.page.locator('.answered').getByText('Who brings a clock?').waitFor();
    await ann.page.locator('.sender').getByText('Bob').waitFor();
    await keep(ann.page, 'group-conversation');
    await keep(bob.page, 'group-conversation-dark-narrow');
  });

  test('offline a message waits, can be taken back, and a draft stays', async () => {
    const { page } = ann;
    await page.evaluate('navigator.serviceWorker.ready.then(() => 0)');
    await page.context().setOffline(true);
    await page.reload();
    await page.getByText('Not connected').waitFor();
    for (const text of ['taken back', 'sent later']) {
      await page.getByLabel('Write a message').fill(text);
      await page.getByLabel('Write a message').press('Enter');
      await page.locator('.own').filter({ hasText: text }).getByText('waiting').waitFor();
    }
    await page.locator('.own').filter({ hasText: 'taken back' }).getByText('Cancel').click();
    await line(page, 'taken back').waitFor({ state: 'detached' });
    await page.getByLabel('Write a message').fill('half a thought');
    await page.keyboard.press('Escape');
    await entry(page, 'Chess').click();
    expect(await page.getByLabel('Write a message').inputValue()).toBe('half a thought');
    await page.getByLabel('Write a message').fill('');
    await page.context().setOffline(false);
    await line(bob.page, 'sent later').waitFor();
    expect(await line(bob.page, 'taken back').count()).toBe(0);
    await page.locator('.own').getByText('waiting').waitFor({ state: 'detached' });
  });

  test('a link leads a person without an account to the group; after a refusal the person may ask again', async () => {
    await manage(ann.page, 'Chess');
    await button(ann.page, 'Make a link').click();
    link = await ann.page.getByLabel('Invitation to a group', { exact: true }).inputValue();
    expect(link.startsWith(`${messenger.url}#group=`)).toBe(true);
    carol = await visit(messenger.browser, link);
    await button(carol.page, 'New account').click();
    await carol.page.getByText('Chess <b>club</b>').waitFor();
    expect(carol.page.url()).not.toContain('group=');
    await button(carol.page, 'Ask to join').click();
    await ann.page.getByText('Asks to join').waitFor();
    await button(ann.page, 'Refuse').click();
    await ann.page.getByText('Asks to join').waitFor({ state: 'detached' });
    await button(carol.page, 'Do not wait any more').click();
    await carol.page.goto(link);
    await button(carol.page, 'Ask to join').click();
    await ann.page.getByText('Asks to join').waitFor();
    await button(ann.page, 'Let in').click();
    await entry(carol.page, 'Chess').waitFor();
    await summary(ann.page, 'Invitations that are open').click();
    await ann.page.getByText('used once').first().waitFor();
    await ann.page.locator('details').getByText('Withdraw').first().click();
    await ann.page.getByText('used once').first().waitFor({ state: 'detached' });
  });

  test('roles, nicknames, a new name: every member sees them', async () => {
    await manage(ann.page, 'Chess');
    await summary(member(ann.page, 'Bob'), 'Bob').click();
    await member(ann.page, 'Bob').getByText('Make administrator').click();
    await member(ann.page, 'Bob').getByText('Administrator', { exact: true }).waitFor();
    await manage(bob.page, 'Chess');
    await bob.page.getByLabel('Dein Name in dieser Gruppe').fill('The Rook');
    await bob.page.locator('form').filter({ hasText: 'Dein Name' }).getByRole('button').click();
    await member(ann.page, 'The Rook (Bob)').waitFor();
    await ann.page.getByLabel('Name', { exact: true }).fill('Chess society');
    await ann.page.locator('form').filter({ hasText: 'Who may' }).getByRole('button').click();
    await bob.page.getByRole('heading', { name: 'Chess society' }).waitFor();
    await keep(ann.page, 'group-members');
    await keep(bob.page, 'group-members-dark-narrow');
    await openGroup(ann.page, 'Chess society');
    await line(ann.page, 'now called “The Rook” here').waitFor();
  });

  test('03 §15.2: of a member who is blocked, a line stands for each message, and nothing of it is shown', async () => {
    await openGroup(carol.page, 'Chess');
    await carol.page.getByLabel('Write a message').fill('Buy my clocks');
    await carol.page.getByLabel('Write a message').press('Enter');
    await openGroup(bob.page, 'Chess');
    await line(bob.page, 'Buy my clocks').waitFor();
    await manage(bob.page, 'Chess');
    await member(bob.page, '…').locator('summary').first().click();
    await member(bob.page, '…').getByRole('button', { name: 'Person' }).click();
    await summary(bob.page, 'Person blockieren').click();
    await button(bob.page, 'Person blockieren').click();
    await openGroup(bob.page, 'Chess');
    await line(bob.page, 'Eine Nachricht einer Person, die du blockiert hast').waitFor();
    expect(await bob.page.locator('.app').textContent()).not.toContain('Buy my clocks');
  });

  test('who is removed reads no more; a ban keeps out until it is lifted', async () => {
    await manage(ann.page, 'Chess');
    const carols = member(ann.page, '…');
    await carols.locator('summary').first().click();
    await summary(carols, 'Ban').click();
    await carols.getByRole('button', { name: 'Ban', exact: true }).click();
    await ann.page.getByRole('heading', { name: 'Banned' }).waitFor();
    await openGroup(carol.page, 'Chess');
    await carol.page.getByText('You are not a member of this group any more').waitFor();
    await button(ann.page, 'Lift the ban').click();
    await ann.page.getByRole('heading', { name: 'Banned' }).waitFor({ state: 'detached' });
    await openGroup(ann.page, 'Chess');
    await line(ann.page, 'The key was changed').waitFor();
    await keep(ann.page, 'group-notes');
  });

  test('the owner changes the key, hands the group over, and leaves; the new owner closes it', async () => {
    await manage(ann.page, 'Chess');
    await button(ann.page, 'Change the key').click();
    await ann.page.getByText('The key was changed.').waitFor();
    await member(ann.page, 'Rook').locator('summary').first().click();
    await summary(member(ann.page, 'Rook'), 'Make owner').click();
    await member(ann.page, 'Rook').getByRole('button', { name: 'Make owner' }).click();
    await member(ann.page, 'Rook').getByText('Owner', { exact: true }).waitFor();
    await summary(ann.page, 'Leave the group').click();
    await button(ann.page, 'Leave the group').click();
    await ann.page.getByText('You are not a member of this group any more').waitFor();
    await keep(ann.page, 'group-left');
    await button(ann.page, 'Remove from the list').click();
    await entry(ann.page, 'Chess society').waitFor({ state: 'detached' });
    await manage(bob.page, 'Chess');
    await summary(bob.page, 'Gruppe schließen').click();
    await button(bob.page, 'Gruppe schließen').click();
    await bob.page.getByText('Diese Gruppe ist geschlossen').first().waitFor();
    await openGroup(bob.page, 'Chess');
    await bob.page.locator('.composer').getByText('geschlossen').waitFor();
  });

  test('a link that leads nowhere gets one plain sentence', async () => {
    for (const text of [
      '%E0%A4%A',
      'svc-group:AAAA',
      '<script>alert(1)</script>',
      'x'.repeat(9_000),
    ]) {
      await ann.page.goto(`${messenger.url}#group=${text}`);
      await ann.page.getByText('This link leads to no group or channel').waitFor();
      expect(ann.page.url()).toBe(`${messenger.url}#/shared`);
      await ann.page.keyboard.press('Escape');
    }
    await keep(ann.page, 'list');
  });

  test('no page complained of anything', () => {
    expect([ann, bob, carol].flatMap(({ complaints }) => complaints)).toEqual([]);
  });
});
