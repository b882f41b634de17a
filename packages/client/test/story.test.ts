/** What people do, through the whole of it: real relay, real TLS, real keys. */
import { expect, test } from 'vitest';
import { befriend, relayWithClients, texts } from './support/relay-with-clients.ts';

const world = relayWithClients();

test('03 §11.1: an account is set up with one device that is valid now', async () => {
  const ann = await world.person();
  const devices = await ann.devices.list();
  expect(devices).toMatchObject([{ deviceId: ann.deviceId, isThisDevice: true, isValidNow: true }]);
  expect(await ann.status()).toMatchObject({ homeRelay: world.relay.relayId, position: -1 });
});

test('03 §13 to §15: an invite, a consent each way, then messages both ways', async () => {
  const [ann, bob] = [await world.person(), await world.person()];
  await bob.contacts.join((await ann.contacts.invite()).text, { note: 'Bob here' });
  expect(await bob.contacts.get(ann.id)).toMatchObject({ status: 'waiting' });
  const asked = await ann.sync();
  expect(asked).toEqual([{ kind: 'contact-request', account: bob.id, note: 'Bob here' }]);
  await ann.contacts.approve(bob.id);
  expect(await bob.sync()).toEqual([
    { kind: 'contact-changed', account: ann.id, status: 'active' },
  ]);

  const sent = await bob.messages.send(ann.id, { text: 'hello Ann' });
  expect(sent.status).toBe('target_accepted');
  await ann.sync();
  await ann.messages.send(bob.id, { text: 'hello Bob' });
  await bob.sync();
  expect(await texts(ann)).toEqual(['hello Ann', 'hello Bob']);
  expect(await texts(bob)).toEqual(['hello Ann', 'hello Bob']);
});

test('03 §13.1: without an invite, public discovery lets a stranger ask', async () => {
  const [ann, bob] = [await world.person(), await world.person()];
  await expect(bob.contacts.request(ann.id)).rejects.toMatchObject({ error: 'forbidden' });
  await ann.profiles.publish({ nickname: 'Ann', public_discovery: true });
  expect(await bob.profiles.resolve(ann.id)).toMatchObject({ nickname: 'Ann' });
  await bob.contacts.request(ann.id);
  expect(await ann.sync()).toMatchObject([{ kind: 'contact-request', account: bob.id }]);
});

test('04 §7.2: who is no contact can neither be written to nor be heard', async () => {
  const [ann, bob] = await world.friends();
  const carl = await world.person();
  await expect(carl.messages.send(ann.id, { text: 'psst' })).rejects.toMatchObject({
    code: 'not_a_contact',
  });
  await ann.contacts.remove(bob.id);
  await bob.messages.send(ann.id, { text: 'still there?' });
  const events = await ann.sync();
  expect(events).toMatchObject([
    { kind: 'message-refused', message: { reason: 'no_relationship' } },
  ]);
  expect(await texts(ann)).toEqual([]);
});

test('both asking at once makes both contacts', async () => {
  const [ann, bob] = [await world.person(), await world.person()];
  const [one, other] = [await ann.contacts.invite(), await bob.contacts.invite()];
  await Promise.all([ann.contacts.join(other.text), bob.contacts.join(one.text)]);
  await Promise.all([ann.sync(), bob.sync()]);
  expect((await ann.contacts.get(bob.id)).status).toBe('active');
  expect((await bob.contacts.get(ann.id)).status).toBe('active');
});

test('04 §12.3: notes to the own account arrive on this device once', async () => {
  const ann = await world.person();
  const note = await ann.messages.send(ann.id, { text: 'buy milk' });
  expect(note.status).toBe('target_accepted');
  await ann.sync();
  await ann.sync();
  expect(await texts(ann)).toEqual(['buy milk']);
  expect((await ann.status()).position).toBeGreaterThanOrEqual(0);
});

test('a second pair on the same relay does not hear the first', async () => {
  const [ann, bob] = await world.friends();
  const [carl, dora] = [await world.person(), await world.person()];
  await befriend(carl, dora);
  await ann.messages.send(bob.id, { text: 'between us' });
  await Promise.all([carl.sync(), dora.sync(), bob.sync()]);
  expect(await texts(bob)).toEqual(['between us']);
  expect([...(await texts(carl)), ...(await texts(dora))]).toEqual([]);
});
