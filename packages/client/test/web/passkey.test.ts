/**
 * Keys that a passkey opens, in a page of each engine, under a strict policy (decision 0043). Chromium
 * has authenticators of its own making; the others can only show that the password is asked for.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CDPSession } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { network, relayWithClients } from '../support/relay-with-clients.ts';
import { type AppServer, bundleForPage, serveApp } from './support/app-server.ts';
import type { Page } from './support/engine.ts';
import { isMissing, openBrowser, openChromiumWith } from './support/engines.ts';

const world = relayWithClients();
let app: AppServer;
let begin = '';
/** Serves the page, over TLS or at `localhost`. */
let serve: (options: { readonly tls?: string; readonly related?: string[] }) => Promise<AppServer>;
beforeAll(async () => {
  const folder = join(world.folder, 'relay');
  const registry = JSON.parse(readFileSync(join(folder, 'registry.json'), 'utf8'));
  const program = `
    import { passkeyStatus } from './src/web/passkey/index.ts';
    import { PasskeyApp } from './test/web/support/passkey-app.ts';
    Object.assign(globalThis, { PasskeyApp, passkeyStatus });`;
  const page = await bundleForPage(program);
  const relay = new URL(registry.relays[0].endpoint).origin;
  serve = (options) => serveApp({ page }, { ...options, relay });
  app = await serve({});
  const given = JSON.stringify({ context: network.context, registry });
  begin = `globalThis.app = new PasskeyApp(${given}), 0`;
});
afterAll(() => app[Symbol.asyncDispose]());

async function load(page: Page, url = app.url): Promise<void> {
  await page.open(url);
  await page.run(begin);
}

/** The virtual authenticators of a page of Chromium. */
class Authenticators {
  readonly #session: CDPSession;

  constructor(session: CDPSession) {
    this.#session = session;
  }

  /** Adds an authenticator, which answers each request at once. */
  async add({ hasPrf = true, transport = 'internal' as 'internal' | 'usb' } = {}): Promise<string> {
    const added = await this.#session.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        ...{ protocol: 'ctap2', ctap2Version: 'ctap2_1', transport, hasPrf },
        ...{ hasResidentKey: true, hasUserVerification: true, isUserVerified: true },
        automaticPresenceSimulation: true,
      },
    });
    return added.authenticatorId;
  }

  async setVerified(authenticatorId: string, isUserVerified: boolean): Promise<void> {
    await this.#session.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified });
  }

  /** Whether the person touches it. */
  async setPresent(authenticatorId: string, enabled: boolean): Promise<void> {
    const options = { authenticatorId, enabled };
    await this.#session.send('WebAuthn.setAutomaticPresenceSimulation', options);
  }

  async count(authenticatorId: string): Promise<number> {
    const options = { authenticatorId };
    const { credentials } = await this.#session.send('WebAuthn.getCredentials', options);
    return credentials.length;
  }
}

async function openWithAuthenticators(args: readonly string[] = []) {
  const browser = await openChromiumWith(args);
  const session = await browser.tab.context().newCDPSession(browser.tab);
  await session.send('WebAuthn.enable');
  return Object.assign(browser, { authenticators: new Authenticators(session) });
}

describe.skipIf(isMissing('Chromium'))('a passkey in Chromium', () => {
  test('opens store and account key after a reload; the password does if it refuses', async () => {
    await using browser = await openWithAuthenticators();
    const { authenticators, page } = browser;
    const one = await authenticators.add();
    await load(page);
    expect(await page.run('passkeyStatus()')).toEqual({ works: 'likely', onThisDevice: true });
    const id = await page.run<string>('app.start()');
    expect(await authenticators.count(one)).toBe(2);

    await load(page);
    expect(await page.run('app.resume()')).toBe(id);
    // The key is in no store: what needs it fails until the passkey gives it.
    const withoutKey = page.run('app.account.devices.renew()');
    await expect(withoutKey).rejects.toMatchObject({ code: 'account_key_required' });
    expect(await page.run('app.renew()')).toBe(id);
    expect(await page.run('app.opened')).toBe('passkey');

    await authenticators.setVerified(one, false);
    await load(page);
    expect(await page.run('app.resume()')).toBe(id);
    expect(await page.run('app.opened')).toBe('passkey_refused');
    expect(await page.run('app.renew()')).toBe(id);
    expect(await page.run('complaints')).toEqual([]);
  }, 120_000);

  test('on a second authenticator opens the key after the first is removed', async () => {
    await using browser = await openWithAuthenticators();
    const { authenticators, page } = browser;
    const first = await authenticators.add();
    await load(page);
    const id = await page.run<string>('app.start()');
    await expect(page.run('app.add()')).rejects.toMatchObject({ code: 'passkey_exists' });
    const second = await authenticators.add({ transport: 'usb' });
    expect(await page.run('app.add()')).toBe(2);
    expect([await authenticators.count(first), await authenticators.count(second)]).toEqual([2, 1]);
    expect(await page.run('app.removeFirst()')).toBe(1);
    expect(await authenticators.count(first)).toBe(1);
    await authenticators.setPresent(first, false);
    expect(await page.run('app.renew()')).toBe(id);
    expect(await page.run('app.opened')).toBe('passkey');
  }, 120_000);

  test('is not made by an authenticator without PRF, and none is left there', async () => {
    await using browser = await openWithAuthenticators();
    const { authenticators, page } = browser;
    const one = await authenticators.add({ hasPrf: false });
    await load(page);
    const id = await page.run('app.start()');
    expect(await page.run('app.opened')).toBe('passkey_unsuitable');
    expect(await authenticators.count(one)).toBe(0);
    expect(await page.run('app.renew()')).toBe(id);
  }, 120_000);

  test('opens no document that was moved to another origin; the password does', async () => {
    await using browser = await openWithAuthenticators();
    const { authenticators, page } = browser;
    await authenticators.add();
    await load(page);
    const id = await page.run<string>('app.start()');
    const kept = JSON.stringify(await page.run('({ ...localStorage })'));
    // A page of the other origin may name the domain: then the browser refuses.
    for (const rpId of ['undefined', "'localhost'"]) {
      await load(page, app.url.replace('localhost', '127.0.0.1'));
      await page.run(`Object.assign(localStorage, ${kept}), app.rpId = ${rpId}, 0`);
      expect(await page.run('app.renew()')).toBe(id);
      expect(await page.run('app.opened')).toBe('passkey_wrong_site');
    }
  }, 120_000);
});

test.skipIf(isMissing('Chromium'))(
  'a passkey in Chromium opens at the other origins that its domain names, and at no other',
  async () => {
    const tls = join(world.folder, 'relay', 'tls');
    const related = ['https://chat.example'];
    await using server = await serve({ tls, related });
    const { host } = new URL(server.url);
    const names = ['home.example', 'chat.example', 'other.example'];
    await using browser = await openWithAuthenticators([
      `--host-resolver-rules=${names.map((name) => `MAP ${name} ${host}`).join()}`,
      '--ignore-certificate-errors',
    ]);
    const { authenticators, page } = browser;
    await authenticators.add();
    await load(page, 'https://home.example/');
    const id = await page.run<string>('app.start()');
    expect(await page.run('app.opened')).toBe('passkey');
    const kept = JSON.stringify(await page.run('({ ...localStorage })'));
    for (const [origin, opened] of [
      ['https://chat.example/', 'passkey'],
      ['https://other.example/', 'passkey_wrong_site'],
    ] as const) {
      await load(page, origin);
      await page.run(`Object.assign(localStorage, ${kept}), app.rpId = 'home.example', 0`);
      expect(await page.run('app.renew()')).toBe(id);
      expect(await page.run('app.opened')).toBe(opened);
    }
  },
  120_000,
);

test.skipIf(isMissing('Chromium'))(
  'a page in Chromium without an authenticator waits for one until it is aborted',
  async () => {
    await using browser = await openBrowser('Chromium');
    const { page } = browser;
    await load(page);
    const unknown = { works: 'unknown', onThisDevice: false };
    expect(await page.run('passkeyStatus()')).toEqual(unknown);
    // After the browser was asked.
    await page.run(`navigator.credentials.create = new Proxy(navigator.credentials.create, {
      apply: (create, ...given) => {
        setTimeout(() => app.stop.abort({ code: 'enough' }));
        return Reflect.apply(create, ...given);
      },
    }), 0`);
    await expect(page.run('app.start()')).rejects.toMatchObject({ code: 'enough' });
  },
  120_000,
);

describe.each([
  ['Firefox', 'unknown', 'passkey_refused'],
  ['WebKit', 'no', 'passkey_unavailable'],
] as const)('a page in %s, which has no authenticator here', (name, works, code) => {
  test.skipIf(isMissing(name))(
    'opens its encrypted store and the account key by their passwords, also after a reload',
    async () => {
      await using browser = await openBrowser(name);
      const { page } = browser;
      await load(page);
      expect(await page.run('passkeyStatus()')).toEqual({ works, onThisDevice: false });
      const id = await page.run<string>('app.start()');
      expect(await page.run('app.opened')).toBe(code);

      await load(page);
      expect(await page.run('app.resume()')).toBe(id);
      const withoutKey = page.run('app.account.devices.renew()');
      await expect(withoutKey).rejects.toMatchObject({ code: 'account_key_required' });
      expect(await page.run('app.renew()')).toBe(id);
      expect(await page.run('complaints')).toEqual([]);
    },
    120_000,
  );
});
