/** An interrupted set-up, and two set-ups in one folder. */
import { accountSigner, decodeBase64url } from '@posthouse/protocol';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { MemoryStore } from '../src/index.ts';
import { Person } from './support/courier.ts';
import { LyingRelay } from './support/lying-relay.ts';
import { network } from './support/relay-with-clients.ts';

let relay: LyingRelay;
beforeAll(async () => {
  relay = await LyingRelay.start();
});
afterEach(() => relay.behave());
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

const accountOf = (key: string) =>
  accountSigner(network, decodeBase64url(key) as Uint8Array).account;

test('the command goes on without flags, with the key that can be exported meanwhile', async () => {
  const ann = new Person(relay.world, 'interrupted');
  relay.overHttp.set('account.route.publish', (response) => {
    response.writeHead(403, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ code: 'forbidden', message: '\u001b[2Jnot today' }));
  });
  const { exit, error } = await ann.run(['setup', ...ann.network]);
  expect({ exit, error }).toEqual({
    exit: 5,
    error: 'courier: account.route.publish: forbidden:  [2Jnot today\n',
  });
  const { account_private_key: key } = await ann.json('key', 'export');
  relay.behave();
  const { account } = await ann.json('setup');
  expect(account).toBe(accountOf(key));
});

test('two set-ups in one store make one account, and lose no key', async () => {
  const store = new MemoryStore();
  const clients = [await relay.world.client({ store }), await relay.world.client({ store })];
  const results = await Promise.allSettled(clients.map((client) => client.setUp()));
  const accounts = results.flatMap((it) => (it.status === 'fulfilled' ? [it.value.id] : []));
  const kept = await store.read((tx) => tx.get('account-keys', 'account'));
  expect(accounts).toEqual([accountOf(JSON.parse(kept as string))]);
  const account = await clients[0]?.account();
  expect(await account?.devices.list()).toHaveLength(1);
});
