/**
 * A passkey that opens the account key in the messenger, next to the password of a backup (decision 0043), in Chromium
 * with an authenticator of its own making, on a real relay.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Relay } from '@posthouse/relay';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { beginAccount, builtMessenger, toList } from './office.ts';
import { hasChromium, openBrowser, type Visitor, visit } from './support.ts';

const folder = mkdtempSync(join(tmpdir(), 'messenger-'));
let relay: Relay;
let browser: Browser;
let url: string;
beforeAll(async () => {
  if (!hasChromium) return;
  relay = await Relay.start({
    ...{ dev: true, data: join(folder, 'relay'), listen: '127.0.0.1:0', log: 'silent' },
    ...{ name: 'The post office', web: { folder: await builtMessenger() } },
  });
  const [endpoint = ''] = relay.https;
  // Passkeys are bound to names, not to addresses of the network.
  url = new URL('/app/', endpoint).href.replace('127.0.0.1', 'localhost');
  browser = await openBrowser(new URL(endpoint).origin);
});
afterAll(async () => {
  await browser?.close();
  await relay?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const password = 'four words by chance';

async function keep(page: Page, name: string): Promise<void> {
  const { MESSENGER_PICTURES: pictures } = process.env;
  if (pictures !== undefined) await page.screenshot({ path: join(pictures, `${name}.png`) });
}

/** Opens a page of the settings, from any screen. */
async function settingsPage(page: Page, name: string): Promise<void> {
  await toList(page);
  await button(page, 'Settings').first().click();
  await button(page, name).last().click();
  await page.getByRole('heading', { name, level: 1 }).waitFor();
}

async function typePasswords(page: Page): Promise<void> {
  for (const label of ['Password', 'Password again']) {
    await page.getByLabel(label, { exact: true }).fill(password);
  }
}

async function erase(page: Page): Promise<void> {
  await settingsPage(page, 'Erase this device');
  const also = page.getByLabel('Also remove this device from the account');
  if (await also.isVisible()) await also.uncheck();
  await page.getByLabel('I know that this cannot be undone').check();
  await button(page, 'Erase everything').click();
  await button(page, 'New account').waitFor();
}

async function paste(page: Page, form: string, text: string): Promise<void> {
  const take = page.getByRole('form', { name: form });
  await take.locator('textarea').fill(text);
  await take.getByRole('button', { name: 'Go on' }).click();
}

describe.skipIf(!hasChromium)(
  '0043: a passkey that opens the account key, next to the password',
  () => {
    let ann: Visitor;
    /** Another device of the account, which has its key. */
    let other: Page;
    let session: CDPSession;
    let authenticatorId: string;
    let id: string;
    let backup: string;

    /** The documents that the device keeps. */
    const kept = async (page: Page) =>
      JSON.parse(await page.evaluate(`localStorage['posthouse.key-passkeys'] ?? '[]'`));

    /** Chooses a backup of this content. */
    const choose = async (page: Page, content: object) => {
      const buffer = Buffer.from(JSON.stringify(content));
      const file = { name: 'backup.json', mimeType: 'application/json', buffer };
      await page.getByLabel('Backup file').setInputFiles(file);
    };

    /** Saves a backup with a passkey, if that succeeds. */
    const save = async (page: Page) => {
      await button(page, 'Save a backup').last().click();
      await typePasswords(page);
      await page.getByLabel('Also open it with a passkey').check();
      await keep(page, 'backup-passkey');
      await button(page, 'Save the file').click();
    };

    test('if none can be made it says so, and the same button saves the backup with the password', async () => {
      const { page } = await visit(browser, url.replace('localhost', '127.0.0.1'));
      await beginAccount(page);
      await button(page, 'Settings').click();
      await save(page);
      await page.getByRole('alert').getByText('Use the password').waitFor();
      expect(await page.getByLabel('Also open it with a passkey').isChecked()).toBe(false);
      const downloading = page.waitForEvent('download');
      await button(page, 'Save the file').click();
      const saved = await (await downloading).path();
      expect(JSON.parse(readFileSync(saved, 'utf8')).extra).toBeNull();
    });

    test('a backup has the key encrypted with the password, and with the passkey', async () => {
      ann = await visit(browser, url);
      const { page } = ann;
      session = await page.context().newCDPSession(page);
      await session.send('WebAuthn.enable');
      const added = await session.send('WebAuthn.addVirtualAuthenticator', {
        options: {
          ...{ protocol: 'ctap2', ctap2Version: 'ctap2_1', transport: 'internal', hasPrf: true },
          ...{ hasResidentKey: true, hasUserVerification: true, isUserVerified: true },
          automaticPresenceSimulation: true,
        },
      });
      authenticatorId = added.authenticatorId;
      await beginAccount(page);
      await button(page, 'Settings').click();
      id = (await page.locator('dd.id').textContent()) ?? '';
      const downloading = page.waitForEvent('download');
      await save(page);
      backup = await (await downloading).path();
      const { extra, accounts } = JSON.parse(readFileSync(backup, 'utf8'));
      expect(accounts[0].key).toMatch(/^6P/);
      expect(extra.posthouse_passkeys).toMatchObject([{ purpose: 'account-key', account: id }]);
      await button(page, 'I have the file').click();
    });

    test('at another address the passkey opens nothing and says so; the password opens the same file', async () => {
      ({ page: other } = await visit(browser, url.replace('localhost', '127.0.0.1')));
      await other.getByText('I have a backup').click();
      const { extra, ...wallet } = JSON.parse(readFileSync(backup, 'utf8'));
      // A service that stores the file can add to it.
      const added = [{ account: id, rp_id: { toString: 1 } }, 7, null, ...extra.posthouse_passkeys];
      await choose(other, { ...wallet, extra: { posthouse_passkeys: added } });
      await button(other, 'Open the file with a passkey').click();
      await other.getByText('Passkeys do not work at this address. Use the password.').waitFor();
      await keep(other, 'restore-passkey');
      await other.getByLabel('Password').fill(password);
      await button(other, 'Open').click();
      await button(other, 'Add a person').waitFor();
      expect(await kept(other)).toEqual(extra.posthouse_passkeys);
      await settingsPage(other, 'Save a backup');
      await other.getByText('Passkey 1, for localhost').waitFor();
      // It is of no use here: another one can be made.
      await other.getByLabel('Also open it with a passkey').waitFor();
    });

    test('without a whole wallet in it, a file that a passkey opens is no backup', async () => {
      const { page } = ann;
      await erase(page);
      await page.getByText('I have a backup').click();
      const { extra } = JSON.parse(readFileSync(backup, 'utf8'));
      await choose(page, { extra });
      await button(page, 'Open the file with a passkey').click();
      await button(page, 'Add a person').waitFor();
      await page.getByText('There is no backup of your account').waitFor();
      expect(await kept(page)).toEqual([]);
    });

    test('a new device opens the backup by passkey', async () => {
      const { page } = ann;
      await erase(page);
      await page.getByText('I have a backup').click();
      await page.getByLabel('Backup file').setInputFiles(backup);
      await button(page, 'Open the file with a passkey').click();
      await button(page, 'Add a person').waitFor();
      expect(await page.getByText('There is no backup of your account').count()).toBe(0);
      await button(page, 'Settings').first().click();
      expect(await page.locator('dd.id').textContent()).toBe(id);
    });

    test('a device without the key opens it by passkey from the file, and the next time without the file', async () => {
      const { page } = ann;
      await erase(page);
      await settingsPage(other, 'Devices');
      await button(other, 'Add a device').click();
      const link = other.getByLabel('Link for the new device', { exact: true });
      await button(page, 'I have this account on another device').click();
      await paste(page, 'The link that your other device shows', await link.inputValue());
      const request = page.getByLabel('Request of the new device', { exact: true });
      await paste(other, 'Request of the new device', await request.inputValue());
      await button(other, 'Yes, add it').click();
      const answer = other.getByLabel('Answer to the new device', { exact: true });
      await paste(page, 'Answer to the new device', await answer.inputValue());
      await button(page, 'Add a person').waitFor();
      await settingsPage(page, 'Devices');
      expect(await button(page, 'Open with a passkey').count()).toBe(0);
      const [document] = JSON.parse(readFileSync(backup, 'utf8')).extra.posthouse_passkeys;
      // Another tab keeps one meanwhile.
      const another = { ...document, credential_id: 'AAAA' };
      await page.evaluate(
        (text) => {
          localStorage['posthouse.key-passkeys'] = text;
        },
        JSON.stringify([another]),
      );
      await page.getByLabel('Backup file').setInputFiles(backup);
      await button(page, 'Open the file with a passkey').click();
      await page.getByText('The account’s key is open').waitFor();
      expect(await kept(page)).toEqual([another, document]);
      await page.evaluate(
        (text) => {
          localStorage['posthouse.key-passkeys'] = text;
        },
        JSON.stringify([document]),
      );
      await page.reload();
      await button(page, 'Open with a passkey').click();
      await page.getByText('The account’s key is open').waitFor();
    });

    test('with the key that it opened, a device is added', async () => {
      const { page } = ann;
      await button(page, 'Add a device').click();
      const link = page.getByLabel('Link for the new device', { exact: true });
      const third = await visit(browser, await link.inputValue());
      const request = third.page.getByLabel('Request of the new device', { exact: true });
      await paste(page, 'Request of the new device', await request.inputValue());
      await button(page, 'Yes, add it').click();
      const answer = page.getByLabel('Answer to the new device', { exact: true });
      await paste(third.page, 'Answer to the new device', await answer.inputValue());
      await button(third.page, 'Add a person').waitFor();
      expect(third.complaints).toEqual([]);
    });

    test('one that is not there opens nothing and says so; the file and its password do', async () => {
      const { page } = ann;
      await page.reload();
      await session.send('WebAuthn.clearCredentials', { authenticatorId });
      await button(page, 'Open with a passkey').click();
      await page.getByText('or use the password').waitFor();
      await page.getByLabel('Backup file').setInputFiles(backup);
      await page.getByLabel('Password').fill(password);
      await button(page, 'Open the key').click();
      await page.getByText('The account’s key is open').waitFor();
      expect(await button(page, 'Open it with a passkey next time').count()).toBe(0);
    });

    test('it is listed with the backup, and removed after a question; then one can be made again', async () => {
      const { page } = ann;
      await settingsPage(page, 'Save a backup');
      const list = page.getByRole('region', { name: 'Passkeys of the account key' });
      await list.getByText('Passkey 1, for localhost').waitFor();
      await list.getByText('Remove', { exact: true }).click();
      await keep(page, 'passkey-list');
      await button(page, 'Remove it').click();
      await page.getByText('The passkey was removed').waitFor();
      expect(await list.count()).toBe(0);
      expect(await page.evaluate('localStorage["posthouse.key-passkeys"]')).toBeUndefined();
      await settingsPage(page, 'Devices');
      await page.getByLabel('Backup file').setInputFiles(backup);
      await page.getByLabel('Password').fill(password);
      await button(page, 'Open the key').click();
      await button(page, 'Open it with a passkey next time').click();
      await page.getByText('The passkey was added').waitFor();
      await page.reload();
      await button(page, 'Open with a passkey').click();
      await page.getByText('The account’s key is open').waitFor();
      await button(page, 'Renew for a year').click();
      await page.getByText('valid for about a year again').waitFor();
      expect(ann.complaints).toEqual([]);
    });
  },
);
