/** A relay with the messenger, and people whose clients are in this process: they write to those in browsers. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Account, Client, MemoryStore } from '@posthouse/client';
import { NodeTransport, nodePrimitives } from '@posthouse/client/node';
import { Network, staticRegistry } from '@posthouse/protocol';
import { Relay } from '@posthouse/relay';
import type { Page } from 'playwright-core';
import { buildMessenger } from '../build.ts';

/** Built once for all files of a run that share a worker. */
let built: Promise<string> | undefined;

/** Builds the messenger, and returns the folder with it; it is removed when the process ends. */
export function builtMessenger(): Promise<string> {
  const build = async () => {
    const folder = mkdtempSync(join(tmpdir(), 'messenger-'));
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
    await buildMessenger(folder);
    return folder;
  };
  built ??= build();
  return built;
}

const network = new Network({
  context: `neo:860833102:0x${'5a'.repeat(20)}`,
  primitives: nodePrimitives,
});
/** No test is about rates. */
const rates = { accountRate: 1e9, accountBurst: 1e9, addressRate: 1e9, addressBurst: 1e9 };

/** A relay that serves the messenger. */
export interface Office extends AsyncDisposable {
  /** Address of the messenger. */
  readonly url: string;
  /** Origin of the relay. */
  readonly origin: string;
  /** Folder of the relay's data, with its certificates in `tls`. */
  readonly data: string;
  /** `config.json`, for other hosts. */
  config(): Promise<string>;
  /** An account whose client is in this process. */
  newPerson(): Promise<Account>;
  /** Stops the relay; nothing answers at its address. */
  stop(): Promise<void>;
  /** Starts it again, at the same address and with what it had. */
  start(): Promise<void>;
}

export async function openOffice(): Promise<Office> {
  await using parts = new AsyncDisposableStack();
  const data = mkdtempSync(join(tmpdir(), 'office-'));
  parts.defer(() => rmSync(data, { recursive: true }));
  mkdirSync(join(data, 'relay'));
  let relay: Relay | undefined;
  const start = async (listen: string) => {
    relay = await Relay.start({
      ...{ dev: true, data: join(data, 'relay'), listen, log: 'silent', limits: rates },
      ...{ network: network.context, name: 'The post office' },
      ...{ web: { folder: await builtMessenger() } },
    });
    return relay.https;
  };
  const stop = async () => {
    const running = relay;
    relay = undefined;
    await running?.[Symbol.asyncDispose]();
  };
  parts.defer(stop);
  const [endpoint = ''] = await start('127.0.0.1:0');
  const read = (name: string) => readFileSync(join(data, 'relay', name), 'utf8');
  const registry = JSON.parse(read('registry.json'));
  const transport = new NodeTransport({ ca: read('tls/ca.pem') });
  const rest = parts.move();
  return {
    url: new URL('/app/', endpoint).href,
    origin: new URL(endpoint).origin,
    data: join(data, 'relay'),
    async config() {
      const { relays } = registry as { readonly relays: readonly { readonly relay_id: string }[] };
      return JSON.stringify({
        ...{ name: 'The post office', relayId: relays[0]?.relay_id, context: network.context },
        ...{ registry, needsInvite: false },
      });
    },
    async newPerson() {
      const client = await Client.open({
        ...{ network, registry: staticRegistry(network, registry), transport },
        store: new MemoryStore(),
      });
      return await client.setUp();
    },
    stop,
    async start() {
      await start(new URL(endpoint).host);
    },
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  };
}

/** Leads to the list of conversations, as the browser's own button does. */
export async function toList(page: Page): Promise<void> {
  await page.evaluate(`history.pushState(null, '', location.pathname);
    dispatchEvent(new PopStateEvent('popstate', { state: null }));`);
}

/** Makes a new account in a page. */
export async function beginAccount(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'New account', exact: true }).click();
  await page.getByRole('button', { name: 'Add a person', exact: true }).waitFor();
}

/** Makes an invite of the page's person, and returns its text. */
export async function inviteOf(page: Page): Promise<string> {
  await toList(page);
  await page.getByRole('button', { name: 'Add a person', exact: true }).click();
  await page.getByRole('button', { name: 'Make an invite', exact: true }).click();
  const { hash } = new URL(await page.getByLabel('Write to me').inputValue());
  await toList(page);
  return decodeURIComponent(hash.replace('#invite=', ''));
}

/** Makes a person of this process a contact of the page's, under a name. */
export async function befriend(page: Page, person: Account, name: string): Promise<void> {
  await person.contacts.join(await inviteOf(page));
  await page.getByLabel('Name on your devices').fill(name);
  await page.getByRole('button', { name: 'Accept', exact: true }).click();
  await page.locator('.entry').filter({ hasText: name }).waitFor();
  await person.sync();
}

/** Posts texts to the only contact of a person, and sends them. */
export async function post(person: Account, ...texts: readonly string[]): Promise<void> {
  const [contact] = await person.contacts.list();
  if (contact === undefined) throw new Error('there is no contact');
  for (const text of texts) await person.messages.post(contact.account, { text });
  await person.sync();
}
