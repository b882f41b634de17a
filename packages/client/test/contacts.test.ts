/** Contacts as a person understands them. */
import { beforeEach, expect, test } from 'vitest';
import type { Account } from '../src/index.ts';
import { relayWithClients } from './support/relay-with-clients.ts';

const world = relayWithClients();
let ann: Account;
let bob: Account;
beforeEach(async () => {
  ann = await world.person();
  bob = await world.person();
});

const statuses = async () => [
  (await ann.contacts.get(bob.id)).status,
  (await bob.contacts.get(ann.id)).status,
];

test('03 §15.2: the status says who waits for what', async () => {
  expect(await statuses()).toEqual(['none', 'none']);
  expect(await ann.contacts.list()).toEqual([]);
  await bob.contacts.join((await ann.contacts.invite()).text, { note: 'from the fair' });
  await ann.sync();
  expect(await statuses()).toEqual(['asks', 'waiting']);
  const [asking] = await ann.contacts.list();
  expect(asking).toEqual({
    account: bob.id,
    status: 'asks',
    note: 'from the fair',
    changedAt: expect.any(Number),
  });
  await ann.contacts.approve(bob.id);
  await bob.sync();
  expect(await statuses()).toEqual(['active', 'active']);
  const active = await bob.contacts.get(ann.id);
  expect(active.record?.grant_from_contact?.grantor).toBe(ann.id);
  expect(active.changedAt).toBe(active.record?.updated_at);
  await ann.contacts.remove(bob.id);
  expect(await statuses()).toEqual(['removed', 'active']);
  expect(await ann.contacts.list()).toMatchObject([{ account: bob.id, status: 'removed' }]);
});

test('03 §15.2: a declined request is listed no more', async () => {
  await bob.contacts.join((await ann.contacts.invite()).text);
  await ann.sync();
  await ann.contacts.reject(bob.id);
  expect(await ann.contacts.list()).toEqual([]);
  expect((await ann.contacts.get(bob.id)).status).toBe('none');
});

test('03 §7, §17.2: the name is the alias, else the nickname of a profile that was read', async () => {
  await bob.profiles.publish({ nickname: 'Bobby', public_discovery: true });
  await ann.contacts.request(bob.id);
  const before = await ann.contacts.get(bob.id);
  expect(before).not.toHaveProperty('name');
  await ann.profiles.resolve(bob.id);
  expect(await ann.contacts.get(bob.id)).toMatchObject({ name: 'Bobby', nickname: 'Bobby' });
  expect(await ann.contacts.get(bob.id)).not.toHaveProperty('alias');
  await ann.contacts.rename(bob.id, 'Bob');
  const renamed = { name: 'Bob', alias: 'Bob', nickname: 'Bobby' };
  expect(await ann.contacts.list()).toMatchObject([renamed]);
});
