/**
 * Each screen of the messenger in Firefox and WebKit: what it must have is shown, nothing is outside of the window at
 * 1,280 and at 320 px, and the page complains of nothing. With `MESSENGER_PICTURES=folder`, pictures of all of them are
 * kept there. `screens.test.ts` has the same screens in Chromium, with axe-core.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Browser } from '../../client/test/web/support/engine.ts';
import { isMissing, openBrowser, openFirefoxWith } from '../../client/test/web/support/engines.ts';
import { AnyPage } from './any-page.ts';
import { type Elsewhere, serveElsewhere } from './elsewhere.ts';
import { builtMessenger, type Office, openOffice } from './office.ts';
import {
  type Addresses,
  faultsOfLayout,
  makePeople,
  makeRooms,
  screens,
  showScreen,
  widths,
} from './screens.ts';

const { MESSENGER_PICTURES: pictures } = process.env;
const password = 'four words by chance';

/** A browser, and how it gets the colours of a scheme; those that it is never asked for are absent. */
interface Engine extends Browser {
  readonly setColors?: (colors: 'light' | 'dark') => Promise<void>;
}

const engines: Readonly<Record<'Firefox' | 'WebKit', () => Promise<Engine>>> = {
  Firefox: () => openFirefoxWith({}),
  WebKit: () => openBrowser('WebKit'),
};

describe.each(['Firefox', 'WebKit'] as const)('0045: each screen in %s', (name) => {
  describe.skipIf(isMissing(name))('is whole, and inside of the window', () => {
    let office: Office;
    let host: Elsewhere;
    let browser: Engine;
    let ann: AnyPage;
    let addresses: Addresses;
    /** Of pages that were left. */
    const complaints: string[] = [];
    beforeAll(async () => {
      office = await openOffice();
      host = await serveElsewhere(await builtMessenger(), await office.config());
      browser = await engines[name]();
      ann = new AnyPage(browser.page);
      addresses = await makeRooms(office);
      await browser.page.resize(widths.wide, 800);
      await ann.open(host.url);
    });
    afterAll(async () => {
      await browser?.[Symbol.asyncDispose]();
      await host?.[Symbol.asyncDispose]();
      await office?.[Symbol.asyncDispose]();
    });

    const keep = async (picture: string) => {
      if (pictures === undefined) return;
      mkdirSync(pictures, { recursive: true });
      const file = `${picture}-${name.toLowerCase()}.png`;
      writeFileSync(join(pictures, file), await browser.page.picture());
    };

    /** Checks what is shown, in each width, and in each colour scheme that the driver can choose. */
    const check = async (screen: string) => {
      const wrong: string[] = [];
      for (const size of ['wide', 'narrow'] as const) {
        await browser.page.resize(widths[size], 800);
        wrong.push(
          ...(await browser.page.run<string[]>(faultsOfLayout)).map((each) => `${size}: ${each}`),
        );
        await keep(`${screen}-${size}-light`);
        if (browser.setColors === undefined || pictures === undefined) continue;
        await browser.setColors('dark');
        await keep(`${screen}-${size}-dark`);
        await browser.setColors('light');
      }
      await browser.page.resize(widths.wide, 800);
      expect([...wrong, ...(await ann.complaints())]).toEqual([]);
    };

    /** Opens the page anew, once what was going on has left the last one. */
    const openAnew = async () => {
      complaints.push(...((await ann.complaints().catch(() => undefined)) ?? []));
      await ann.open(host.url);
    };

    test('welcome', async () => {
      await ann.see('New account', 'button');
      await ann.openParts();
      await ann.see('Backup file');
      await check('welcome');
    });

    test('join', async () => {
      await ann.click('I have this account on another device');
      await ann.see('Add this device to my account', 'h2');
      await check('join');
      await ann.click('Do not join');
    });

    test('a channel without an account', async () => {
      await ann.openLink('channel', addresses.channel);
      await ann.see('On the water at six');
      await check('visitor');
      await ann.click('Make an account to follow');
    });

    test('with people, messages and a request', () => makePeople(ann, office));

    test.each(screens)('$name', async (screen) => {
      await showScreen(ann, screen, addresses);
      await check(screen.name);
    });

    test('locked', async () => {
      await ann.toList();
      await ann.click('Settings');
      await ann.click('Lock this device');
      for (const label of ['Password', 'Password again']) await ann.type(label, password);
      // An authenticator would wait for a finger.
      if (name === 'Firefox') await ann.clickText('label', 'Also open it with a passkey');
      await ann.click('Lock this device');
      // The page loads itself anew, which ends whatever runs in it.
      await expect.poll(() => ann.texts('h1')).toEqual(['Locked']);
      await openAnew();
      await ann.see('I cannot open it');
      await ann.openParts();
      await check('locked');
      await ann.type('Password', password);
      await ann.click('Open');
      await ann.see('Bob', '.entry');
    });

    test('of a removed device', async () => {
      // Without a network, the relay cannot say otherwise.
      await office.stop();
      await browser.page.run(`localStorage.setItem('posthouse.ending', 'device_unknown')`);
      await openAnew();
      await ann.type('Password', password);
      await ann.click('Open');
      await ann.click('What now?');
      await ann.see('What is still here', 'main');
      await ann.openParts();
      await check('ended');
      expect(complaints).toEqual([]);
    });
  });
});
