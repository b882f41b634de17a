/** What an operator does with the admin page, in Chromium, on a real relay (decision 0041). */
import { join } from 'node:path';
import type { Account, Client } from '@posthouse/client';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { killAll } from '../../relay/test/support/command.ts';
import { AdminRelays, token } from './admin-relays.ts';
import { hasChromium, openBrowser, type Visitor, visit } from './support.ts';

/** A text that would mislead, or do harm, if it was shown as it is. */
const hostile = `<img src=x onerror=alert(1)> \u202Egnp.exe ${'x'.repeat(1_900)}`;

let world: AdminRelays;
let browser: Browser;
let visitor: Visitor;
let page: Page;
const asked: string[] = [];
beforeAll(async () => {
  if (!hasChromium) return;
  world = await AdminRelays.start();
  browser = await openBrowser();
  visitor = await visit(browser, 'about:blank');
  ({ page } = visitor);
  page.on('request', (request) => asked.push(request.url()));
  await page.clock.install();
  await page.goto(`${world.relay.operations}/admin/`);
});
afterAll(async () => {
  killAll();
  await browser?.close();
  await world?.[Symbol.asyncDispose]();
});

const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true });
const row = (text: string) => page.getByRole('row').filter({ hasText: text });
const status = (text: string | RegExp) => page.getByRole('status').getByText(text).waitFor();

/** Keeps pictures of a view, if the run asks for them: light, dark, and narrow. */
async function keep(name: string): Promise<void> {
  const { ADMIN_PICTURES: pictures } = process.env;
  if (pictures === undefined) return;
  const { width, height } = page.viewportSize() as { width: number; height: number };
  const shoot = (kind: string) =>
    page.screenshot({ path: join(pictures, `${name}-${kind}.png`), fullPage: true });
  await shoot('light');
  await page.emulateMedia({ colorScheme: 'dark' });
  await shoot('dark');
  await page.setViewportSize({ width: 320, height: 640 });
  await shoot('narrow');
  await page.setViewportSize({ width, height });
  await page.emulateMedia({ colorScheme: 'light' });
}

/** Opens a view by its link, with the keyboard. */
async function open(name: string): Promise<void> {
  await page.getByRole('link', { name, exact: true }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name, level: 1 }).waitFor();
}

/** The figure after a name. */
const fact = async (label: string) =>
  await page
    .locator('.facts div')
    .filter({ has: page.getByText(label, { exact: true }) })
    .locator('dd')
    .innerText();

describe.skipIf(!hasChromium)('an operator', () => {
  let ann: Account;
  let clients: Client[];
  let channel: string;

  test('signs in with the token and with no other; the page never sends it', async () => {
    const sent: string[] = [];
    page.on('request', async (request) => {
      sent.push(JSON.stringify([await request.allHeaders(), request.postData(), request.url()]));
    });
    for (const [wrong, said] of [
      ['hello', 'This is no token'],
      ['b2'.repeat(32), 'This is not the token of this relay'],
    ] as const) {
      await page.getByLabel('Token').fill(wrong);
      await page.keyboard.press('Enter');
      await page.getByRole('alert').getByText(said).waitFor();
      expect(await page.getByLabel('Token').inputValue()).toBe('');
    }
    await keep('sign-in');
    await page.getByLabel('Token').fill(`  ${token}\n`);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Usage' }).waitFor();
    expect(sent.length).toBeGreaterThan(3);
    expect(sent.join()).toContain('Posthouse ');
    expect(sent.join()).not.toContain(token);
    expect(sent.join()).not.toContain('b2'.repeat(32));
    const kept = '[localStorage.length, sessionStorage.length, document.cookie, history.state]';
    expect(await page.evaluate(kept)).toEqual([0, 0, '', null]);
  });

  test('approves accounts that wait, and rejects one', async () => {
    clients = [await world.client(), await world.client(), await world.client()];
    for (const client of clients) {
      await expect(world.setUp(client)).rejects.toMatchObject({ code: 'registration_refused' });
    }
    await open('Accounts');
    await expect.poll(() => button(/^Approve/).count()).toBe(3);
    await keep('accounts-waiting');
    for (const left of [2, 1]) {
      await button(/^Approve/)
        .first()
        .click();
      await status('is let in.');
      await expect.poll(() => button(/^Approve/).count()).toBe(left);
    }
    await button(/^Reject/).click();
    // Nothing is done before the answer, and Escape is no.
    await page.getByRole('dialog').getByText('Reject this account?').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await button(/^Reject/).count()).toBe(1);
    await button(/^Reject/).click();
    await keep('question');
    await page.getByRole('dialog').getByRole('button', { name: 'Reject' }).click();
    await status('is rejected.');
    await page.getByText('No account waits.').waitFor();
    const came = await Promise.allSettled(clients.map((client) => world.setUp(client)));
    expect(came.filter((one) => one.status === 'fulfilled')).toHaveLength(2);
    const people = came.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    ann = people[0] as Account;
    const bob = people[1] as Account;
    const made = await ann.channels.create({ name: 'News \u202Ereversed' });
    channel = made.id;
    await ann.groups.create({ name: 'Rowing <i>club</i>' });
    const { sequence } = await ann.channels.send(channel, { text: `<b>one</b> ${hostile}` });
    await bob.channels.follow(made.link);
    await bob.channels.report(channel, sequence, { reason: hostile });
  });

  test('reads the usage: the same as posthouse stats', async () => {
    // The relay answers again what it added up in the last ten seconds.
    world.clock.advance(11);
    await open('Usage');
    await page.getByText('Free on the disk of the database').waitFor();
    await page.getByText('Bytes of accounts', { exact: true }).waitFor();
    const told = await world.command('stats');
    const figures = Object.fromEntries(
      [...told.matchAll(/^(\S+(?: \S+)*) {2,}([\d,]+)/gm)].map(([, name, value]) => [name, value]),
    );
    for (const [label, name] of [
      ['Accounts', 'accounts'],
      ['Groups', 'groups'],
      ['Channels', 'channels'],
      ['Bytes of accounts', 'bytes of accounts'],
      ['Bytes of channels', 'bytes of channels'],
      ['Bytes of the database', 'bytes of database'],
      ['Bytes of the last day', 'bytes of the last day'],
    ] as const) {
      expect([label, (await fact(label)).split(' ')[0]]).toEqual([label, figures[name]]);
    }
    expect(figures).toMatchObject({ accounts: '2', groups: '1', channels: '1' });
    await keep('usage');
  });

  test('reads what is wrong in sentences, and what a restore lost', async () => {
    const answer = await fetch(`${world.relay.operations}/health`);
    const health = (await answer.json()) as object;
    const wrong = {
      ...{ status: 'degraded', storage: 'read-only', disk: 'low', registry: 'lost' },
      losses: { groups: 2, channels: 1 },
    };
    await page.route('**/health', (route) => route.fulfill({ json: { ...health, ...wrong } }), {
      times: 1,
    });
    await button('Read again').click();
    for (const sentence of [
      'The database accepted no write last time',
      'A disk has less room than limits.diskFree',
      'The registry cannot be read',
      'A restore lost changes of 2 groups and 1 channels',
    ]) {
      await page.getByRole('listitem').getByText(sentence).waitFor();
    }
    expect(await page.locator('.faults li').count()).toBe(4);
    await keep('usage-faults');
    await button('Read again').click();
    await page.getByText('All is well.').waitFor();
  });

  test('decides about a report; what strangers wrote is shown as text', async () => {
    await open('Reports');
    const report = row(channel);
    await report.getByText('[U+202E]').first().waitFor();
    await report.getByText('<img src=x onerror=alert(1)>').first().waitFor();
    await keep('reports');
    await report.getByRole('button', { name: /^Decide/ }).click();
    await page.getByRole('heading', { name: 'Reported post' }).waitFor();
    await page.getByText('News [U+202E]reversed').waitFor();
    await page.getByText('<b>one</b>').first().waitFor();
    expect(await page.locator('main img, main b').count()).toBe(0);
    await button(/^Block the channel/).waitFor();
    await keep('report');
    await button(/^Withhold/).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Withhold' }).click();
    await status('is withheld.');
    await page.getByText('There is no report.').waitFor();
    await expect(ann.channels.listPosts(channel)).resolves.toBeDefined();
    await button(/^Make readable again/).click();
    await status('is readable again.');
    await page.getByText('No post is withheld.').waitFor();
  });

  test('looks at channels and groups, and blocks an address until a time', async () => {
    await open('Groups');
    await keep('groups');
    await row('Rowing <i>club</i>').getByRole('button', { name: /^Show/ }).click();
    await page.getByRole('heading', { name: 'Group', exact: true }).waitFor();
    await page.getByText('Owner', { exact: true }).waitFor();
    await keep('group');
    await open('Channels');
    await keep('channels');
    await row(channel).getByRole('button', { name: /^Show/ }).press('Enter');
    await page.getByRole('heading', { name: 'Channel', exact: true }).waitFor();
    await keep('channel');
    await button(/^Block/).click();
    await page.getByRole('heading', { name: 'Blocks' }).waitFor();
    expect(await page.getByLabel('What').inputValue()).toBe('channel');
    expect(await page.getByLabel('Which').inputValue()).toBe(channel);
    await page.getByLabel('What').selectOption('Address');
    await page.getByLabel('Which').fill('no address');
    await page.getByLabel('Reason').fill(`spam ${hostile.slice(0, 60)}`);
    await page.getByLabel('Until').fill('2099-01-02T03:04');
    await button('Block …').click();
    await page.getByRole('dialog').getByText('2 Jan 2099').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Block' }).click();
    // What is wrong is said, and the form stays as it is.
    await page
      .getByRole('alert')
      .getByText(/address/)
      .waitFor();
    await keep('block-fault');
    await page.getByLabel('Which').fill('198.51.100.0/24');
    await button('Block …').click();
    await page.getByRole('dialog').getByRole('button', { name: 'Block' }).click();
    await status('Address 198.51.100.0/24 is blocked');
    expect(await world.command('block', 'list')).toContain('198.51.100.0/24');
    await row('198.51.100.0/24').getByText('2 Jan 2099').waitFor();
    await keep('blocks');
    await row('198.51.100.0/24').getByRole('button', { name: /^End/ }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'End the block' }).click();
    await page.getByText('Nothing is blocked.').waitFor();
  });

  test('makes an invite, whose code is shown once, and revokes it', async () => {
    await open('Invites');
    await page.getByLabel('Accounts that it lets in').fill('30');
    await page.getByLabel('Days until it expires').fill('14');
    await page.getByLabel('Note').fill('rowing club <b>');
    await page.keyboard.press('Enter');
    await status('Its code is shown once.');
    const code = await page.locator('.code code').innerText();
    expect(code.length).toBeGreaterThan(20);
    await page.getByText('codes count with “invite” only').waitFor();
    await row('rowing club <b>').getByText('0 of 30').waitFor();
    await keep('invites');
    await button('I have it').click();
    expect(await page.content()).not.toContain(code);
    await row('rowing club')
      .getByRole('button', { name: /^Revoke/ })
      .click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByText('There is no invite.').waitFor();
  });

  test('deletes an account after a question that names what it owns', async () => {
    await open('Accounts');
    await keep('accounts');
    await row(ann.id).getByRole('button', { name: /^Show/ }).click();
    await page.getByRole('heading', { name: 'Account', exact: true }).waitFor();
    await page.getByText('Devices', { exact: true }).waitFor();
    await keep('account');
    await button('Delete …').click();
    await page.getByRole('dialog').getByText(`channel ${channel}`).waitFor();
    await page.getByRole('dialog').getByText('“Rowing <i>club</i>”: owner').waitFor();
    await keep('delete');
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await button('Delete …').click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await status('is deleted, with');
    await row(ann.id).waitFor({ state: 'detached' });
  });

  test('sees why another relay fails, and has it tried again', async () => {
    await open('Relays');
    await row(world.other.relayId).getByText('Connected', { exact: true }).waitFor();
    await world.stopOther();
    await expect
      .poll(async () => {
        world.clock.advance(61);
        world.relay.wakeJobs();
        await button('Read again').click();
        return await row(world.other.relayId).innerText();
      })
      .toContain('Failing');
    await row(world.other.relayId).getByText('Nothing listens at its address').waitFor();
    await keep('relays');
    await button(/^Try again now/).click();
    await status('is tried again within a minute.');
  });

  test('no view is wider than 320 pixels', async () => {
    await page.setViewportSize({ width: 320, height: 640 });
    for (const name of [
      'Usage',
      'Accounts',
      'Groups',
      'Channels',
      'Reports',
      'Blocks',
      'Invites',
      'Relays',
    ]) {
      await open(name);
      await page
        .getByText(/Reading|Adding up/)
        .first()
        .waitFor({ state: 'detached' });
      const width = await page.evaluate('document.documentElement.scrollWidth');
      expect([name, width]).toEqual([name, 320]);
    }
    await page.setViewportSize({ width: 1_100, height: 750 });
  });

  test('is told if the relay does not answer; a nonce of before a restart is asked for anew', async () => {
    await page.context().setOffline(true);
    await button('Read again').click();
    await page.getByRole('alert').getByText('The relay does not answer.').waitFor();
    await page.context().setOffline(false);
    const unknown = { nonce: `1-${'0'.repeat(32)}-${'0'.repeat(64)}` };
    await page.route('**/proof*', (route) => route.fulfill({ json: unknown }), { times: 1 });
    await button('Read again').click();
    await page.getByText('The relay does not answer.').waitFor({ state: 'detached' });
    const isBusy = () => button('Read again').getAttribute('aria-disabled');
    await expect.poll(isBusy).toBe('false');
    expect((await page.getByRole('alert').allInnerTexts()).join('')).toBe('');
    // As if the operator had replaced the token.
    await page.route('**/proof*', (route) => route.fulfill({ json: unknown }), { times: 2 });
    await button('Read again').click();
    await status('The relay takes this token no longer');
    await page.getByLabel('Token').fill(token);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Relays' }).waitFor();
  });

  test('where the browser has no key for the page, it says under which address it works', async () => {
    const { page: plain } = await visit(browser, 'about:blank');
    await plain.addInitScript(
      "Object.defineProperty(globalThis, 'isSecureContext', { value: false })",
    );
    await plain.goto(`${world.relay.operations}/admin/`);
    await plain.getByRole('alert').getByText('only over https, or at 127.0.0.1').waitFor();
    expect(await plain.getByLabel('Token').count()).toBe(0);
    await plain.context().close();
  });

  test('signs out, and is signed out after 15 minutes without use', async () => {
    await button('Sign out').click();
    await page.getByLabel('Token').waitFor();
    expect(await page.locator('table, .facts').count()).toBe(0);
    await page.getByLabel('Token').fill(token);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Relays' }).waitFor();
    await page.clock.fastForward(14 * 60_000);
    await page.keyboard.press('Shift');
    await page.clock.fastForward(14 * 60_000);
    expect(await button('Sign out').count()).toBe(1);
    await page.clock.fastForward(90_000);
    await page.getByText('You were signed out after 15 minutes without use.').waitFor();
    await page.getByLabel('Token').fill(token);
    await page.keyboard.press('Enter');
    await button('Sign out').waitFor();
    await page.reload();
    await page.getByLabel('Token').waitFor();
  });

  test('asked nothing of others, and complained of nothing but the wrong token', () => {
    const origin = `${world.relay.operations}/`;
    expect(asked.length).toBeGreaterThan(50);
    expect(asked.filter((url) => !url.startsWith(origin))).toEqual([]);
    const expected = /the server responded with a status of (?:401|400)/;
    expect(visitor.complaints.filter((line) => !expected.test(line))).toEqual([]);
  });
});
