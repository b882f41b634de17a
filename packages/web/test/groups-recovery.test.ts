/** Groups after a loss, in Chromium: of all devices of a member, and of what a host had. */
import { cpSync, globSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Account } from '@posthouse/client';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { backUp, restore } from '../../relay/src/backup/index.ts';
import { relayMigrations, restoredStatements } from '../../relay/src/modules.ts';
import { type Office, openOffice } from './office.ts';
import { button, entry, keep, newPerson, summary } from './rooms-support.ts';
import { hasChromium, openBrowser, type Visitor, visit } from './support.ts';

let office: Office;
let browser: Browser;
beforeAll(async () => {
  if (!hasChromium) return;
  office = await openOffice();
  browser = await openBrowser(office.origin);
});
afterAll(async () => {
  await browser?.close();
  await office?.[Symbol.asyncDispose]();
});

describe.skipIf(!hasChromium)('a group that was founded in the messenger', () => {
  let ann: Visitor;
  let bob: Account;
  let link: string;

  test('an account of another client joins by the link', async () => {
    ann = await newPerson({ browser, url: office.url });
    const { page } = ann;
    await button(page, 'New group').click();
    await page.getByLabel('Name', { exact: true }).fill('Chess club');
    await button(page, 'Make the group').click();
    await button(page, 'Make a link').click();
    link = await page.getByLabel('Invitation to a group', { exact: true }).inputValue();
    bob = await office.newPerson();
    await bob.groups.join(decodeURIComponent(new URL(link).hash.replace('#group=', '')));
    await button(page, 'Let in').click();
    await page.getByText('Members (2)').waitFor();
    await bob.sync();
    expect((await bob.groups.list())[0]?.membership).toBe('member');
  });

  test('05 §17.4: a member who lost every device restores the backup, asks for access and gets it', async () => {
    const before = await newPerson({ browser, url: office.url });
    await button(before.page, 'Save a backup').click();
    await before.page.getByLabel('Password', { exact: true }).fill('four words by chance');
    await before.page.getByLabel('Password again').fill('four words by chance');
    const downloading = before.page.waitForEvent('download');
    await button(before.page, 'Save the file').click();
    // The browser's own copy goes with the context that is closed below.
    const backup = join(office.data, '..', 'backup.json');
    await (await downloading).saveAs(backup);
    await before.page.goto(link);
    await button(before.page, 'Ask to join').click();
    await button(ann.page, 'Let in').click();
    await entry(before.page, 'Chess club').waitFor();
    const { page, complaints } = await visit(browser, office.url);
    await page.getByText('I have a backup').click();
    await page.getByLabel('Backup file').setInputFiles(backup);
    await page.getByLabel('Password').fill('four words by chance');
    // Nothing can share the group's keys any more.
    await before.page.context().close();
    await button(page, 'Open').click();
    await entry(page, 'Notes to myself').waitFor();
    await page.goto(link);
    await button(page, 'Ask to join').click();
    await page.locator('.request').getByText('This device has no key of this group').waitFor();
    await button(page, 'Ask for access again').waitFor();
    await keep(page, 'group-no-key');
    await button(page, 'Ask for access again').click();
    await page.getByText('You asked for access').waitFor();
    await ann.page.getByText('Lost their keys').waitFor();
    await keep(ann.page, 'group-recovery');
    await button(ann.page, 'Give access').click();
    await page.getByText('You asked for access').waitFor({ state: 'detached' });
    await button(page, 'Open the group').click();
    await page.getByLabel('Write a message').fill('here again');
    await page.getByLabel('Write a message').press('Enter');
    await expect
      .poll(async () => {
        await bob.sync();
        const [group] = await bob.groups.list();
        return (await bob.groups.listMessages(group?.id ?? '')).map(({ body }) => body?.text);
      })
      .toEqual(['here again']);
    expect(complaints).toEqual([]);
  });

  test('05 §5.6: after a restore of the host, its owner hands back what was lost, with one button', async () => {
    const { page } = ann;
    const folder = join(office.data, '..');
    const storage = { engine: 'sqlite', url: '', connections: 2 } as const;
    const now = () => Math.floor(Date.now() / 1_000);
    await backUp({
      ...{ config: { data: office.data, storage }, to: join(folder, 'backup'), withKeys: true },
      ...{ migrations: relayMigrations, now: now() },
    });
    await page.getByLabel('Name', { exact: true }).fill('Chess society');
    await page.locator('form').filter({ hasText: 'Who may' }).getByRole('button').click();
    await page.getByRole('heading', { name: 'Chess society' }).waitFor();
    await office.stop();
    const modules = { migrations: relayMigrations, statements: restoredStatements };
    const to = join(folder, 'restored');
    await restore({ from: join(folder, 'backup'), to, ...modules, expected: {}, now: now() });
    for (const file of globSync(join(office.data, '{relay.sqlite*,generation}'))) rmSync(file);
    cpSync(to, office.data, { recursive: true });
    await office.start();
    await page.reload();
    await page.getByText('was put back to an earlier state').waitFor();
    await keep(page, 'group-restored');
    await button(page, 'Hand the changes back').click();
    await page.getByText('The changes were handed back').waitFor();
    await page.getByText('was put back to an earlier state').waitFor({ state: 'detached' });
    await bob.sync();
    expect((await bob.groups.list())[0]?.state?.name).toBe('Chess society');
    await summary(page, 'Close the group').waitFor();
  });

  test('no page complained of anything', () => {
    // The browser notes that the relay was away.
    expect(ann.complaints.filter((each) => !each.includes('net::ERR'))).toEqual([]);
  });
});
