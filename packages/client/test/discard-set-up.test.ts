/** 03 §11: a set-up, restore or join that was begun and has not ended can be discarded. */
import { nodeRandom } from '@posthouse/protocol/node';
import { expect, test } from 'vitest';
import { MemoryStore } from '../src/index.ts';
import { NodeTransport } from '../src/node.ts';
import { relayWithClients } from './support/relay-with-clients.ts';
import { impatient } from './support/restartable-client.ts';
import { lostAnswer, lostRequest, SteeredTransport } from './support/steered-transport.ts';

const world = relayWithClients();

/** A client without an account, whose requests a test steers. */
async function newcomer() {
  const steered = new SteeredTransport(new NodeTransport({ ca: world.ca }));
  const store = new MemoryStore();
  const client = await world.client({ store, transport: steered, ...impatient, prefer: 'http' });
  const keys = async () => {
    const names = ['device-keys', 'account-keys', 'certificates', 'setup', 'drawn-keys'];
    const rows = await store.read((tx) => Promise.all(names.map((name) => tx.list(name))));
    return rows.flat().length;
  };
  return { client, store, steered, keys };
}

const away = { code: 'relay_unreachable' };

test('a set-up that did not take effect is discarded with its keys, and another account takes its place', async () => {
  const { client, steered, keys } = await newcomer();
  steered.rules.set('device.state.publish', lostRequest);
  await expect(client.setUp()).rejects.toMatchObject(away);
  const other = { accountKey: nodeRandom(32) };
  await expect(client.setUp(other)).rejects.toMatchObject({ code: 'already_set_up' });
  await client.discardSetUp();
  expect(await keys()).toBe(0);
  expect(await client.accountKey()).toBeUndefined();
  steered.rules.clear();
  const { id } = await client.setUp(other);
  expect((await world.person({ accountKey: other.accountKey })).id).toBe(id);
});

test('a set-up that may have taken effect is discarded only if the app says so, and its key goes on', async () => {
  const { client, steered, keys } = await newcomer();
  steered.rules.set('account.route.publish', lostAnswer);
  await expect(client.setUp()).rejects.toMatchObject(away);
  await expect(client.discardSetUp()).rejects.toMatchObject({
    code: 'already_sent',
    message: expect.stringMatching(/call `setUp` again.*save the account key/) as string,
  });
  const accountKey = (await client.accountKey())!;
  await client.discardSetUp({ evenIfSent: true });
  expect(await keys()).toBe(0);
  steered.rules.clear();
  // The account exists, with a device that is lost: the key adds this one.
  const account = await client.setUp({ accountKey });
  expect(await account.devices.list()).toHaveLength(2);
});

test('a join whose request left is not discarded by itself; one that did not leave is', async () => {
  const accountKey = nodeRandom(32);
  const account = await world.person({ accountKey });
  const { client, steered, keys } = await newcomer();
  steered.rules.set('account.route.resolve', lostRequest);
  await expect(client.setUp({ accountKey })).rejects.toThrow();
  await client.discardSetUp();
  steered.rules.clear();
  steered.rules.set('device.state.publish', lostAnswer);
  await expect(client.setUp({ accountKey, keepKey: true })).rejects.toMatchObject(away);
  await expect(client.discardSetUp()).rejects.toMatchObject({ code: 'already_sent' });
  await client.discardSetUp({ evenIfSent: true });
  expect(await keys()).toBe(0);
  expect(await account.devices.list()).toHaveLength(2);
});

test('an account that exists stays, and without a set-up nothing happens', async () => {
  const { client } = await newcomer();
  await client.discardSetUp();
  const account = await client.setUp();
  for (const evenIfSent of [false, true]) {
    await expect(client.discardSetUp({ evenIfSent })).rejects.toMatchObject({
      code: 'already_set_up',
    });
  }
  expect(await client.accountKey()).toHaveLength(32);
  expect((await account.messages.send(account.id, { text: 'still here' })).status).toBe(
    'target_accepted',
  );
});

test('a requested device is discarded with its keys: the next request is of another device', async () => {
  const account = await world.person();
  const { client } = await newcomer();
  const first = await client.requestDevice(account.publicKey);
  expect(await client.requestDevice(account.publicKey)).toEqual(first);
  await client.discardSetUp();
  const approval = await account.devices.approve(first);
  const known = { accountPublicKey: account.publicKey };
  await expect(client.completeDevice(approval, known)).rejects.toMatchObject({
    code: 'wrong_device',
  });
});

test('03 §11.2: a store that asked an account, or begins to set one up, asks no other one with those keys', async () => {
  const [ann, bob] = [await world.person(), await world.person()];
  const refused = { code: 'already_set_up', message: expect.stringContaining('discardSetUp') };
  const asking = await newcomer();
  const first = await asking.client.requestDevice(ann.publicKey);
  await expect(asking.client.requestDevice(bob.publicKey)).rejects.toMatchObject(refused);
  expect(await asking.client.requestDevice(ann.publicKey)).toEqual(first);
  await asking.client.discardSetUp();
  const { certificate } = await asking.client.requestDevice(bob.publicKey);
  expect(certificate.account).toBe(bob.id);
  expect(certificate.signing_public_key).not.toBe(first.certificate.signing_public_key);

  // Stores of an earlier version did not name the account.
  const upgraded = await newcomer();
  await upgraded.client.requestDevice(ann.publicKey);
  await upgraded.store.write(async (tx) => {
    const { account: _, ...keys } = JSON.parse((await tx.get('device-keys', 'device')) as string);
    await tx.put('device-keys', 'device', JSON.stringify(keys));
  });
  await upgraded.client.requestDevice(ann.publicKey);
  await expect(upgraded.client.requestDevice(bob.publicKey)).rejects.toMatchObject(refused);

  const beginning = await newcomer();
  beginning.steered.rules.set('device.state.publish', lostRequest);
  await expect(beginning.client.setUp()).rejects.toMatchObject(away);
  await expect(beginning.client.requestDevice(ann.publicKey)).rejects.toMatchObject(refused);
});

test('03 §11.2: a store with an account asks for no device of another one, and completes none', async () => {
  const [ann, bob] = [await world.person(), await world.person()];
  const { client, store } = await newcomer();
  const account = await client.setUp();
  const rows = async () =>
    JSON.stringify(
      await store.read(async (tx) => [await tx.list('certificates'), await tx.list('own')]),
    );
  const before = await rows();
  const refused = { code: 'already_set_up' };
  await expect(client.requestDevice(ann.publicKey)).rejects.toMatchObject(refused);
  const request = await (await world.client()).requestDevice(bob.publicKey);
  const approval = await bob.devices.approve(request);
  await expect(
    client.completeDevice(approval, { accountPublicKey: bob.publicKey }),
  ).rejects.toMatchObject(refused);
  expect(await rows()).toBe(before);
  // Its own account renews it with the same keys.
  expect((await client.requestDevice(account.publicKey)).certificate.account).toBe(account.id);
});

test.each(['auth.challenge', 'device.state.publish'])(
  'a set-up that is discarded while it runs (%s) ends, and no account begins',
  async (method) => {
    const { client, steered, keys } = await newcomer();
    const arrived = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    steered.rules.set(method, async (send) => {
      arrived.resolve();
      await held.promise;
      return await send();
    });
    const running = client.setUp();
    const ended = expect(running).rejects.toMatchObject({ code: 'cancelled' });
    await arrived.promise;
    await client.discardSetUp();
    held.resolve();
    await ended;
    expect(await keys()).toBe(0);
    expect(steered.bodies('account.route.publish')).toEqual([]);
    await expect(client.account()).rejects.toMatchObject({ code: 'not_set_up' });
  },
);
