/** Accounts that a person blocks (03 §15.2, §17.2). */
import { beforeEach, expect, test } from 'vitest';
import type { Account } from '../src/index.ts';
import { anotherDevice, exchange } from './groups/support.ts';
import { OfflineProgram } from './support/offline-program.ts';
import { befriend, relayWithClients } from './support/relay-with-clients.ts';

const world = relayWithClients();
let ann: Account;
let bob: Account;
beforeEach(async () => {
  ann = await world.person();
  bob = await world.person();
});

const status = async (account: Account) => (await account.contacts.get(bob.id)).status;

test('03 §15.2: blocking a contact ends it; its messages are refused, its requests dropped', async () => {
  await befriend(ann, bob);
  await ann.contacts.rename(bob.id, 'Bob');
  await ann.contacts.block(bob.id);
  expect(await ann.contacts.list()).toMatchObject([{ status: 'blocked', name: 'Bob' }]);
  await bob.messages.post(ann.id, { text: 'you there?' });
  const { text: invite } = await ann.contacts.invite();
  await bob.contacts.join(invite);
  await bob.sync();
  const events = await ann.sync();
  expect(events.map(({ kind }) => kind)).toEqual(['message-refused']);
  expect(await ann.messages.list({ with: bob.id })).toEqual([]);
  expect(await status(ann)).toBe('blocked');
  await expect(ann.contacts.approve(bob.id)).rejects.toMatchObject({ code: 'invalid_input' });
});

test('03 §15.2: a request that waits goes with the block; unblocked, the account can ask again', async () => {
  const { text: invite } = await ann.contacts.invite();
  await bob.contacts.join(invite);
  await ann.sync();
  await ann.contacts.block(bob.id);
  expect(await status(ann)).toBe('blocked');
  await ann.contacts.unblock(bob.id);
  expect(await status(ann)).toBe('removed');
  await bob.contacts.join(invite, { note: 'once more' });
  expect((await ann.sync()).map(({ kind }) => kind)).toEqual(['contact-request']);
  await ann.contacts.approve(bob.id);
  expect(await status(ann)).toBe('active');
  // Nothing to end: a contact stays one.
  await ann.contacts.unblock(bob.id);
  expect(await status(ann)).toBe('active');
});

test('03 §15.2: the answer to an own request is dropped; asking a blocked account is refused', async () => {
  await ann.contacts.join((await bob.contacts.invite()).text);
  await bob.sync();
  await ann.contacts.block(bob.id);
  await bob.contacts.approve(ann.id);
  await ann.sync();
  expect(await status(ann)).toBe('blocked');
  const again = ann.contacts.join((await bob.contacts.invite()).text);
  await expect(again).rejects.toMatchObject({ code: 'invalid_input' });
});

test('03 §15.2: a stranger can be blocked, the own account and what is no ID cannot', async () => {
  await ann.contacts.block(bob.id);
  expect(await status(ann)).toBe('blocked');
  await expect(ann.contacts.block(ann.id)).rejects.toMatchObject({ code: 'invalid_input' });
  await expect(ann.contacts.block('bob')).rejects.toMatchObject({ code: 'verification_failed' });
});

test('03 §17.2: own devices learn of a block, also of one whose request waits there, and of its end', async () => {
  const laptop = await anotherDevice(world, ann);
  await bob.contacts.join((await ann.contacts.invite()).text);
  await laptop.sync();
  await ann.sync();
  expect([await status(ann), await status(laptop)]).toEqual(['asks', 'asks']);
  await ann.contacts.block(bob.id);
  await exchange(ann, laptop);
  expect(await status(laptop)).toBe('blocked');
  await laptop.contacts.unblock(bob.id);
  const events: string[] = [];
  await laptop.sync();
  for (const { kind } of await ann.sync()) events.push(kind);
  expect(events).toEqual(['contact-changed']);
  expect(await status(ann)).toBe('removed');
});

test('03 §15.2: what another own device asked for before it learned of the block gives no access', async () => {
  const laptop = await anotherDevice(world, ann);
  await ann.contacts.block(bob.id);
  world.clock.advance(2);
  await laptop.contacts.join((await bob.contacts.invite()).text);
  await bob.sync();
  await bob.contacts.approve(ann.id);
  // The consent comes before the block has reached the laptop, and without the laptop's records.
  const events = await ann.sync();
  expect(events.map(({ kind }) => kind)).not.toContain('contact-changed');
  await bob.messages.send(ann.id, { text: 'you there?' });
  expect((await ann.sync()).map(({ kind }) => kind)).toEqual(['message-refused']);
  expect(await ann.messages.list({ with: bob.id })).toEqual([]);
});

test('03 §15.2: a block ends an approval that is under way', async () => {
  const program = await OfflineProgram.start(world);
  const { account } = program;
  await bob.contacts.join((await account.contacts.invite()).text);
  await account.sync();
  const asked = Promise.withResolvers<void>();
  const blocked = Promise.withResolvers<void>();
  program.rule(['device.state.resolve'], async (send) => {
    asked.resolve();
    await blocked.promise;
    return await send();
  });
  const approving = account.contacts.approve(bob.id);
  await asked.promise;
  await account.contacts.block(bob.id);
  blocked.resolve();
  await expect(approving).rejects.toMatchObject({ code: 'invalid_input' });
  expect(await status(account)).toBe('blocked');
});
