/** How recent the recipient's devices are when a message is sealed (03 §13.2, 04 §7.4). */
import { nodeRandom } from '@posthouse/protocol/node';
import { expect, test } from 'vitest';
import type { Account } from '../src/index.ts';
import { NodeTransport } from '../src/node.ts';
import { befriend, relayWithClients, texts } from './support/relay-with-clients.ts';
import { answeredBy, SteeredTransport } from './support/steered-transport.ts';

const world = relayWithClients();
const method = 'device.state.resolve';

/** Bob, whose requests a test sees and steers, and his contact Ann. */
async function contacts() {
  const transport = new SteeredTransport(new NodeTransport({ ca: world.ca }));
  const ann = await world.person();
  const bob = await world.person({ prefer: 'http', transport });
  await befriend(ann, bob);
  return { ann, bob, transport };
}

/** Adds a device that has its account's contacts; no contact hears of it. */
async function addDevice(account: Account): Promise<Account> {
  const client = await world.client();
  const approval = await account.devices.approve(await client.requestDevice(account.publicKey));
  const device = await client.completeDevice(approval, { accountPublicKey: account.publicKey });
  for (const each of [device, account, device]) await each.sync();
  return device;
}

test('a device gets what a contact writes a minute after it was added, though not told of it', async () => {
  const { ann, bob } = await contacts();
  await bob.messages.send(ann.id, { text: 'before' });
  const laptop = await addDevice(ann);
  world.clock.advance(60);
  await bob.messages.send(ann.id, { text: 'after' });
  await laptop.sync();
  expect(await texts(laptop)).toEqual(['after']);
});

test('a new own device gets copies of what is sent a minute after it was added', async () => {
  const accountKey = nodeRandom(32);
  const [ann, bob] = [await world.person(), await world.person({ accountKey })];
  await befriend(ann, bob);
  await bob.messages.send(ann.id, { text: 'before' });
  const laptop = await world.person({ accountKey });
  world.clock.advance(60);
  await bob.messages.send(ann.id, { text: 'after' });
  // The laptop learns of the contact.
  for (const each of [laptop, bob, laptop]) await each.sync();
  expect(await texts(laptop)).toEqual(['after']);
});

test('the states of recipient and sender are read once a minute, not for each message', async () => {
  const { ann, bob, transport } = await contacts();
  await bob.messages.send(ann.id, { text: 'one' });
  const reads = () => transport.made.filter((request) => request.method === method).length;
  const before = reads();
  for (const text of ['two', 'three']) await bob.messages.send(ann.id, { text });
  expect(reads()).toBe(before);
  world.clock.advance(60);
  for (const text of ['four', 'five']) await bob.messages.send(ann.id, { text });
  expect(reads()).toBe(before + 2);
});

test('if the read fails, the state of the last hour serves, and is read again after a minute', async () => {
  const { ann, bob, transport } = await contacts();
  await bob.messages.send(ann.id, { text: 'before' });
  transport.rules.set(method, answeredBy(503, 'temporarily_unavailable'));
  world.clock.advance(60);
  await bob.messages.send(ann.id, { text: 'all the same' });
  const failed = transport.bodies(method).length;
  await bob.messages.send(ann.id, { text: 'without another try' });
  expect(transport.bodies(method).length).toBe(failed);
  world.clock.advance(60);
  await bob.messages.send(ann.id, { text: 'after another one' });
  expect(transport.bodies(method).length).toBeGreaterThan(failed);
  await ann.sync();
  expect(await texts(ann)).toHaveLength(4);
});

test('03 §13.2: a state older than an hour does not serve', async () => {
  const { ann, bob, transport } = await contacts();
  await bob.messages.send(ann.id, { text: 'before' });
  transport.rules.set(method, answeredBy(503, 'temporarily_unavailable'));
  world.clock.advance(3_600);
  const stop = AbortSignal.timeout(60_000);
  await expect(bob.messages.send(ann.id, { text: 'too old' }, { signal: stop })).rejects.toThrow();
  expect((await bob.status()).outbox).toBe(1);
  transport.rules.clear();
  await bob.sync();
  await ann.sync();
  expect(await texts(ann)).toEqual(['before', 'too old']);
});
