/** What people do with channels in the messenger, in Chromium, on a real relay. */
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

/** Opens the channel's posts from the list. */
async function openChannel(page: Page, name: string): Promise<void> {
  await page.keyboard.press('Escape');
  await entry(page, name).click();
  await page.locator('.composer').waitFor();
}

/** Opens the screen with link, writers and settings. */
async function manage(page: Page, name: string): Promise<void> {
  await openChannel(page, name);
  await page.locator('.chat header').getByRole('button').last().click();
  await page.locator('.people').first().waitFor();
}

async function post(page: Page, text: string): Promise<void> {
  const field = page.locator('.composer textarea');
  await field.fill(text);
  await field.press('Enter');
  await line(page, text).waitFor();
}

/** Opens what can be done with a post. */
async function more(page: Page, text: string): Promise<void> {
  const posted = page.locator('.messages li').filter({ hasText: text });
  await posted.getByRole('button', { name: /^(More|Mehr)$/ }).click();
}

describe.skipIf(!hasChromium)('a channel, its owner, a moderator and a reader', () => {
  let ann: Visitor;
  let bob: Visitor;
  let reader: Visitor;
  let link: string;

  test('a channel is made, and its owner posts', async () => {
    ann = await newPerson(messenger);
    bob = await newPerson(messenger, narrowGerman);
    await introduce([ann, 'Ann'], [bob, 'Bob']);
    const { page } = ann;
    await button(page, 'New channel').click();
    await page.getByLabel('Name', { exact: true }).fill('Chess <i>news</i>');
    await page.getByLabel('What it is about').fill('Results, as they happen');
    await keep(page, 'channel-new');
    await button(page, 'Make the channel').click();
    link = await page.getByLabel('Link to this channel').last().inputValue();
    expect(link.startsWith(`${messenger.url}#channel=`)).toBe(true);
    await keep(page, 'channel-made');
    await button(page, 'Open the channel').click();
    await post(page, 'Round one: a draw');
    await post(page, '<img src=x onerror=alert(1)> Round two');
    await page.locator('.own').getByText('waiting').waitFor({ state: 'detached' });
    await keep(page, 'channel-conversation');
    expect(page.url()).toBe(`${messenger.url}#/chat`);
  });

  test('its link shows it to a person without an account, who can make one and follow', async () => {
    reader = await visit(messenger.browser, link);
    const { page } = reader;
    await page.getByText('Round one: a draw').waitFor();
    await page.getByText('Chess <i>news</i>').waitFor();
    await page.getByText('<img src=x onerror=alert(1)> Round two').waitFor();
    expect(page.url()).not.toContain('channel=');
    await keep(page, 'channel-visitor');
    await button(page, 'Make an account to follow').click();
    await button(page, 'New account').click();
    await button(page, 'Follow').click();
    await entry(page, 'Chess <i>news</i>').waitFor();
    await page.locator('.composer').getByText('Only its owner and moderators post here').waitFor();
    await keep(page, 'channel-reader');
  });

  test('a post is unread for its followers until they open the channel', async () => {
    await reader.page.keyboard.press('Escape');
    await post(ann.page, 'Round three: Black wins');
    await entry(reader.page, 'Chess').getByText('1 unread message', { exact: true }).waitFor();
    await openChannel(reader.page, 'Chess');
    await line(reader.page, 'Round three: Black wins').waitFor();
    await expect.poll(() => reader.page.title()).toBe('The post office');
  });

  test('the owner makes a contact a moderator, who posts, changes and deletes', async () => {
    await manage(ann.page, 'Chess');
    await ann.page.getByLabel('Make moderator').selectOption({ label: 'Bob' });
    await button(ann.page, 'Make moderator').click();
    await ann.page.locator('.people').getByText('Bob').waitFor();
    await keep(ann.page, 'channel-moderators');
    await bob.page.goto(link);
    await bob.page.getByText('Round one: a draw').waitFor();
    await keep(bob.page, 'channel-preview-dark-narrow');
    await button(bob.page, 'Folgen').click();
    await bob.page.locator('.composer textarea').waitFor();
    await post(bob.page, 'A moderator’s word');
    await more(bob.page, 'Round one: a draw');
    await bob.page.getByLabel('Text ändern').last().fill('Round one: White wins');
    await keep(bob.page, 'channel-post-dark-narrow');
    await button(bob.page, 'Speichern').click();
    await line(bob.page, 'Round one: White wins').waitFor();
    await line(reader.page, 'Round one: White wins').waitFor();
    await reader.page.locator('.messages').getByText('changed', { exact: true }).waitFor();
    await more(bob.page, 'Round two');
    await summary(bob.page, 'Beitrag löschen').click();
    await bob.page.getByLabel('Grund, den alle').fill('not true');
    await button(bob.page, 'Beitrag löschen').click();
    await line(reader.page, 'deleted a post: not true').waitFor();
    expect(await line(reader.page, 'Round two').count()).toBe(0);
    await keep(reader.page, 'channel-changed');
  });

  test('a reader reports a post with a reason', async () => {
    const { page } = reader;
    await more(page, 'A moderator’s word');
    await page.getByLabel('Reason').fill('off topic');
    await keep(page, 'channel-report');
    await button(page, 'Report').click();
    await page.getByText('The report was sent').waitFor();
    await line(page, 'A moderator’s word').waitFor();
  });

  test('a moderator who is one no more cannot post; an unfollowed channel is gone', async () => {
    await manage(ann.page, 'Chess');
    await button(ann.page, 'Take the role away').click();
    await button(ann.page, 'Take the role away').waitFor({ state: 'detached' });
    await bob.page.locator('.composer').getByText('Hier schreiben nur').waitFor();
    await manage(bob.page, 'Chess');
    await summary(bob.page, 'Nicht mehr folgen').click();
    await button(bob.page, 'Nicht mehr folgen').click();
    await entry(bob.page, 'Chess').waitFor({ state: 'detached' });
  });

  test('a new name and the end of the channel reach its readers', async () => {
    const { page } = ann;
    await page.getByLabel('Name', { exact: true }).fill('Chess archive');
    await button(page, 'Save').click();
    await reader.page.getByRole('heading', { name: 'Chess archive' }).waitFor();
    await summary(page, 'Close the channel').click();
    await button(page, 'Close the channel').click();
    await reader.page.locator('.composer').getByText('This channel is closed').waitFor();
    await line(reader.page, 'The channel was closed').waitFor();
  });

  test('a link that leads nowhere gets one plain sentence, with and without an account', async () => {
    const { page } = await visit(messenger.browser, `${messenger.url}#channel=svc-channel:AAAA`);
    await page.getByText('This link leads to no group or channel').waitFor();
    for (const text of ['%', 'svc-channel:AAAA', link.slice(0, -4).split('=')[1]]) {
      await reader.page.goto(`${messenger.url}#channel=${text}`);
      await reader.page.getByText('This link leads to no group or channel').waitFor();
      await reader.page.keyboard.press('Escape');
    }
  });

  test('a visitor who opens the link of another channel sees the posts of that one alone', async () => {
    const { page } = ann;
    await page.keyboard.press('Escape');
    await button(page, 'New channel').click();
    await page.getByLabel('Name', { exact: true }).fill('Go news');
    await button(page, 'Make the channel').click();
    const other = await page.getByLabel('Link to this channel').last().inputValue();
    await button(page, 'Open the channel').click();
    await post(page, 'Nine stones');
    await page.locator('.own').getByText('waiting').waitFor({ state: 'detached' });
    const visitor = await visit(messenger.browser, link);
    await visitor.page.getByText('Round one: White wins').waitFor();
    await visitor.page.goto(other);
    await visitor.page.getByText('Go news').waitFor();
    await visitor.page.getByText('Nine stones').waitFor();
    expect(await visitor.page.locator('.posts article').count()).toBe(1);
    expect(visitor.complaints).toEqual([]);
    await visitor.page.context().close();
  });

  test('no page complained of anything', () => {
    expect([ann, bob, reader].flatMap(({ complaints }) => complaints)).toEqual([]);
  });
});
