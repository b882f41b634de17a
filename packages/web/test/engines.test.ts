/**
 * The messenger in Firefox and WebKit, from a static host at another origin than the relay's: the story of one person,
 * to whom another writes. `story.test.ts` has more of it, in Chromium.
 */
import type { Account } from '@posthouse/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Browser } from '../../client/test/web/support/engine.ts';
import { isMissing, openBrowser } from '../../client/test/web/support/engines.ts';
import { AnyPage } from './any-page.ts';
import { type Elsewhere, serveElsewhere } from './elsewhere.ts';
import { builtMessenger, type Office, openOffice, post } from './office.ts';

/** The SDK's address in a link of the messenger. */
const addressIn = (link: string) => decodeURIComponent(new URL(link).hash.replace(/^#[a-z]+=/, ''));

describe.each(['Firefox', 'WebKit'] as const)('a person with %s', (name) => {
  describe.skipIf(isMissing(name))('and one with another client', () => {
    let office: Office;
    let host: Elsewhere;
    let browser: Browser;
    let ann: AnyPage;
    let bob: Account;
    let backup: string;
    // Firefox has passkeys; whether one can open a key depends on the authenticator.
    const passkeySentence =
      name === 'WebKit' ? 'Passkeys do not work in this browser' : 'Also open it with a passkey';
    beforeAll(async () => {
      office = await openOffice();
      host = await serveElsewhere(await builtMessenger(), await office.config());
      browser = await openBrowser(name);
      ann = new AnyPage(browser.page);
      bob = await office.newPerson();
    });
    afterAll(async () => {
      await browser?.[Symbol.asyncDispose]();
      await host?.[Symbol.asyncDispose]();
      await office?.[Symbol.asyncDispose]();
    });

    test('has a new account and saves a backup', async () => {
      await ann.open(host.url);
      await ann.click('New account');
      await ann.click('Save a backup');
      await ann.see(passkeySentence);
      await ann.keepSaved();
      for (const label of ['Password', 'Password again']) {
        await ann.type(label, 'four words by chance');
      }
      await ann.click('Save the file');
      backup = await ann.saved();
      await ann.click('I have the file');
      await ann.seeNo('There is no backup');
    });

    test('is told that the data may be deleted, where the browser does not keep it', async () => {
      await ann.click('Settings');
      await ann.see('The browser may delete your data');
    });

    test('invites the other, accepts, and they write to each other', async () => {
      await ann.click('Add a person');
      await ann.click('Make an invite');
      const { hash } = new URL(await ann.valueOf('Write to me'));
      await bob.contacts.join(decodeURIComponent(hash.replace('#invite=', '')));
      await ann.type('Name on your devices', 'Bob');
      await ann.click('Accept');
      await ann.clickText('.entry', 'Bob');
      await bob.sync();
      await post(bob, 'hello Ann');
      await ann.see('hello Ann', '.theirs');
      await ann.enter('Write a message', 'hello Bob');
      await ann.see('at their relay', '.own');
      await bob.sync();
      const texts = (await bob.messages.list({ limit: 10 })).map(({ body }) => body?.text);
      expect(texts).toEqual(['hello Ann', 'hello Bob']);
    });

    test('makes a group, lets the other in by a link, and both write there', async () => {
      await ann.click('New group');
      await ann.type('Name', 'Chess club');
      await ann.click('Make the group');
      await ann.click('Make a link');
      const link = addressIn(await ann.valueOf('Invitation to a group'));
      const { id } = await bob.groups.join(link);
      await ann.see('Asks to join');
      await ann.click('Let in');
      await ann.seeNo('Asks to join');
      await ann.clickText('.entry', 'Chess club');
      await ann.enter('Write a message', 'Who brings a clock?');
      await ann.see('Who brings a clock?', '.own');
      await ann.seeNo('waiting', '.own');
      const atBob = async () => {
        await bob.sync();
        return JSON.stringify(await bob.groups.listEntries(id));
      };
      await expect.poll(atBob).toContain('Who brings a clock?');
      await bob.groups.post(id, { text: 'I do' });
      await bob.sync();
      await ann.see('I do', '.theirs');
      await ann.enter('Write a message', 'Thank you');
      await ann.see('Thank you', '.own');
      await ann.clickText('.chat header button', 'Group');
      await ann.see('Members (2)');
    });

    test('makes a channel and posts; a person without an account reads it by its link', async () => {
      await ann.click('New channel');
      await ann.type('Name', 'Chess news');
      await ann.click('Make the channel');
      const link = await ann.valueOf('Link to this channel');
      await ann.click('Open the channel');
      await ann.enter('Write a message', 'Round one: a draw');
      await ann.see('Round one: a draw', '.own');
      await ann.seeNo('waiting', '.own');
      const { id } = await bob.channels.follow(addressIn(link));
      const atBob = async () => {
        await bob.sync();
        return JSON.stringify(await bob.channels.listPosts(id));
      };
      await expect.poll(atBob).toContain('Round one: a draw');
      await using other = await openBrowser(name);
      const visitor = new AnyPage(other.page);
      await visitor.open(link);
      await visitor.see('Round one: a draw');
      expect(await visitor.complaints()).toEqual([]);
      await ann.clickText('.entry', 'Bob');
    });

    test('finds everything after a reload while nothing answers, in Firefox not even the host', async () => {
      if (name === 'Firefox') await ann.waitForServiceWorker();
      const before = await ann.complaints();
      await ann.type('Write a message', 'a draft');
      await office.stop();
      // This build of WebKit asks the host for the worker's script, past the service worker.
      host.isPaused = name === 'Firefox';
      await ann.open(host.url);
      await ann.see('Not connected');
      await ann.clickText('.entry', 'Bob');
      await ann.see('hello Ann', '.theirs');
      expect(await ann.valueOf('Write a message')).toBe('a draft');
      await ann.enter('Write a message', 'a draft');
      await ann.see('waiting', '.own');
      host.isPaused = false;
      await office.start();
      await ann.see('at their relay', '.own');
      await ann.seeNo('waiting', '.own');
      await bob.sync();
      expect((await bob.messages.list({ limit: 10 })).at(-1)?.body?.text).toBe('a draft');
      // Requests that nothing answers are the browser's own lines, not the page's.
      expect([...before, ...(await ann.complaints())]).toEqual([]);
    });

    test('opens the backup in an empty browser', async () => {
      await using other = await openBrowser(name);
      const again = new AnyPage(other.page);
      await again.open(host.url);
      await again.clickText('summary', 'I have a backup');
      await again.pick('backup.json', backup);
      await again.type('Password', 'four words by mistake');
      await again.click('Open');
      await again.see('The password does not open this file');
      await again.type('Password', 'four words by chance');
      await again.click('Open');
      await again.see('Notes to myself', '.entry');
      expect(await again.complaints()).toEqual([]);
    });
  });
});
