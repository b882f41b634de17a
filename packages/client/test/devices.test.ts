/** Several devices of one account: joining, renewing, removing, knowing the same. */
import { deriveDeviceId } from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { describe, expect, test } from 'vitest';
import { type Account, type AccountEvent, MemoryStore } from '../src/index.ts';
import { befriend, network, relayWithClients, texts } from './support/relay-with-clients.ts';

const world = relayWithClients();

/** Adds a device by request and approval, as people do it. */
async function addDevice(account: Account): Promise<Account> {
  const client = await world.client();
  const request = await client.requestDevice(account.publicKey);
  const approval = await account.devices.approve(request);
  return await client.completeDevice(approval, { accountPublicKey: account.publicKey });
}

/** Synchronizes until no device has anything left to send. */
async function settle(...accounts: readonly Account[]): Promise<AccountEvent[]> {
  const all: AccountEvent[] = [];
  for (let quiet = 0; quiet < accounts.length; ) {
    for (const account of accounts) {
      const before = await account.status();
      const events = await account.sync();
      const after = await account.status();
      all.push(...events);
      const still =
        before.position === after.position && after.pendingTasks === 0 && after.outbox === 0;
      quiet = still ? quiet + 1 : 0;
    }
  }
  return all;
}

const standing = async (account: Account, other: Account) =>
  (await account.contacts.get(other.id)).status;

describe('joining', () => {
  test('03 §11.2: with the account key, a store becomes another device', async () => {
    const accountKey = nodeRandom(32);
    const [phone, laptop] = [
      await (await world.client()).setUp({ accountKey }),
      await (await world.client()).setUp({ accountKey }),
    ];
    expect(laptop.id).toBe(phone.id);
    expect(laptop.deviceId).not.toBe(phone.deviceId);
    expect(await phone.devices.list()).toHaveLength(2);
  });

  test('by request and approval, without any private key on the way', async () => {
    const phone = await world.person();
    const client = await world.client();
    const request = await client.requestDevice(phone.publicKey);
    const approval = await phone.devices.approve(request);
    const laptop = await client.completeDevice(approval, { accountPublicKey: phone.publicKey });
    expect(await laptop.devices.list()).toMatchObject([
      { deviceId: phone.deviceId },
      { deviceId: laptop.deviceId, isThisDevice: true, isValidNow: true },
    ]);
    await expect(laptop.devices.renew()).rejects.toMatchObject({ code: 'account_key_required' });
  });

  test('01 §8: an earlier approval does not replace the certificate of a later one', async () => {
    const phone = await world.person();
    const store = new MemoryStore();
    const client = await world.client({ store });
    const approve = async () =>
      await phone.devices.approve(await client.requestDevice(phone.publicKey));
    const earlier = await approve();
    world.clock.advance(60);
    const later = await approve();
    const accountPublicKey = phone.publicKey;
    await client.completeDevice(later, { accountPublicKey });
    await client.completeDevice(earlier, { accountPublicKey });
    const kept = await store.read((tx) => tx.get('certificates', 'own'));
    expect(JSON.parse(kept as string)).toEqual(later.certificate);
  });

  test('a request of another account, or a changed one, is not approved', async () => {
    const [ann, bob] = [await world.person(), await world.person()];
    const client = await world.client();
    const request = await client.requestDevice(ann.publicKey);
    await expect(bob.devices.approve(request)).rejects.toMatchObject({
      code: 'verification_failed',
    });
    const longer = { ...request.certificate, expires_at: request.certificate.expires_at + 1 };
    const changed = { ...request, certificate: longer };
    await expect(ann.devices.approve(changed)).rejects.toMatchObject({
      code: 'verification_failed',
    });
    expect(await ann.devices.list()).toHaveLength(1);
  });

  test('an approval of another device is not taken', async () => {
    const ann = await world.person();
    const [one, other] = [await world.client(), await world.client()];
    const approval = await ann.devices.approve(await one.requestDevice(ann.publicKey));
    const taking = other.completeDevice(approval, { accountPublicKey: ann.publicKey });
    await expect(taking).rejects.toMatchObject({ code: 'wrong_device' });
  });

  test('03 §11.2: an approval with the route of another account is not taken', async () => {
    const [ann, bob] = [await world.person(), await world.person()];
    const [one, other] = [await world.client(), await world.client()];
    const approval = await ann.devices.approve(await one.requestDevice(ann.publicKey));
    const { route } = await bob.devices.approve(await other.requestDevice(bob.publicKey));
    const taking = one.completeDevice({ ...approval, route }, { accountPublicKey: ann.publicKey });
    await expect(taking).rejects.toMatchObject({ code: 'wrong_device' });
  });

  test('03 §11.2: a device that was removed after it was approved is not set up', async () => {
    const ann = await world.person();
    const client = await world.client();
    const request = await client.requestDevice(ann.publicKey);
    const approval = await ann.devices.approve(request);
    const deviceId = deriveDeviceId(network, request.certificate);
    await ann.devices.remove(deviceId);
    const taking = client.completeDevice(approval, { accountPublicKey: ann.publicKey });
    await expect(taking).rejects.toMatchObject({ code: 'relay_refused', error: 'device_unknown' });
    await expect(client.account()).rejects.toMatchObject({ code: 'not_set_up' });
  });

  test('01 §10: a ninth device is refused before anything is signed', async () => {
    const ann = await world.person();
    for (let count = 2; count <= 8; count += 1) {
      await ann.devices.approve(await (await world.client()).requestDevice(ann.publicKey));
    }
    const ninth = await (await world.client()).requestDevice(ann.publicKey);
    await expect(ann.devices.approve(ninth)).rejects.toMatchObject({ code: 'invalid_input' });
    expect(await ann.devices.list()).toHaveLength(8);
  }, 120_000);
});

describe('03 §17: what the devices of an account tell each other', () => {
  test('a new device asks for the contacts and can write to them', async () => {
    const [phone, bob] = await world.friends();
    await phone.contacts.rename(bob.id, 'Bob');
    const laptop = await addDevice(phone);
    await settle(laptop, phone, bob);
    expect((await laptop.contacts.get(bob.id)).record).toMatchObject({ alias: 'Bob' });
    await laptop.messages.send(bob.id, { text: 'from the laptop' });
    await bob.sync();
    await phone.sync();
    expect(await texts(bob)).toEqual(['from the laptop']);
    expect(await texts(phone)).toEqual(['from the laptop']);
  });

  test('03 §18.2: the new device signs the grants, and the contact gets them', async () => {
    const [phone, bob] = await world.friends();
    const laptop = await addDevice(phone);
    await settle(laptop, phone, bob);
    const held = (await bob.contacts.get(phone.id)).record?.grant_from_contact;
    expect(Object.keys(held?.signatures ?? {}).sort()).toEqual(
      [phone.deviceId, laptop.deviceId].sort(),
    );
    // So the phone can go, and the laptop alone keeps the way open.
    await laptop.sync();
    await phone.devices.remove(phone.deviceId);
    await bob.messages.send(phone.id, { text: 'are you there?' });
    await laptop.sync();
    expect(await texts(laptop)).toEqual(['are you there?']);
  });

  test('03 §18.2: before a device is removed, contacts get the grant of one that stays', async () => {
    const phone = await world.person();
    const laptop = await addDevice(phone);
    await settle(phone, laptop);
    const bob = await world.person();
    // Only the laptop ever signs anything for Bob.
    await bob.contacts.join((await laptop.contacts.invite()).text);
    await laptop.sync();
    await laptop.contacts.approve(bob.id);
    await bob.sync();
    await phone.sync();
    await phone.devices.remove(laptop.deviceId);
    await settle(phone, bob);
    await bob.messages.send(phone.id, { text: 'still here' });
    await phone.sync();
    expect(await texts(phone)).toEqual(['still here']);
    await expect(laptop.sync()).rejects.toMatchObject({ error: 'device_unknown' });
  });

  test('a contact made on one device is one on the other, from the same messages', async () => {
    const phone = await world.person();
    const laptop = await addDevice(phone);
    await settle(phone, laptop);
    const bob = await world.person();
    await phone.contacts.join((await bob.contacts.invite()).text);
    await bob.sync();
    await bob.contacts.approve(phone.id);
    await bob.messages.send(phone.id, { text: 'right away' });
    // The phone is off: the laptop reads what the phone sent, then Bob's answer, then his message.
    await laptop.sync();
    expect(await standing(laptop, bob)).toBe('active');
    expect(await texts(laptop)).toEqual(['right away']);
    await settle(phone, laptop, bob);
    expect(await texts(phone)).toEqual(['right away']);
  });

  test.each(['by an approval', 'by its key'])(
    'on a device that joined %s, a message that comes before the contacts are known waits for them',
    async (how) => {
      const accountKey = nodeRandom(32);
      const phone = await world.person({ accountKey, keepKey: true });
      const bob = await world.person();
      await befriend(phone, bob);
      await settle(phone, bob);
      const laptop =
        how === 'by its key' ? await world.person({ accountKey }) : await addDevice(phone);
      await phone.sync();
      await bob.sync();
      // Bob asks for the devices again.
      world.clock.advance(61);
      await bob.messages.send(phone.id, { text: 'early' });
      const stranger = await world.person();
      expect(await laptop.sync()).toEqual([]);
      expect(await texts(laptop)).toEqual([]);
      await phone.sync();
      expect(await laptop.sync()).toMatchObject([
        { kind: 'contact-changed', account: bob.id },
        { kind: 'message', message: { outcome: 'applied' } },
      ]);
      expect(await texts(laptop)).toEqual(['early']);
      expect(await standing(laptop, stranger)).toBe('none');
    },
  );

  test('a contact removed on one device is gone on the other', async () => {
    const [phone, bob] = await world.friends();
    const laptop = await addDevice(phone);
    await settle(laptop, phone, bob);
    await laptop.contacts.remove(bob.id);
    await settle(laptop, phone);
    expect(await standing(phone, bob)).toBe('removed');
    await expect(phone.messages.send(bob.id, { text: 'x' })).rejects.toMatchObject({
      code: 'not_a_contact',
    });
    // The tombstone blocks no account: after Bob ended it too, both may agree again.
    await bob.contacts.remove(phone.id);
    world.clock.advance(2);
    await befriend(bob, phone);
    await settle(phone, laptop, bob);
    expect(await standing(phone, bob)).toBe('active');
    expect(await standing(laptop, bob)).toBe('active');
  });
});

describe('periods', () => {
  test('01 §9: renewing keeps the device, its contacts and its session', async () => {
    const [ann, bob] = await world.friends();
    const [before] = await ann.devices.list();
    world.clock.advance(3_600);
    await ann.devices.renew();
    const [after] = await ann.devices.list();
    expect(after?.deviceId).toBe(before?.deviceId);
    expect(after?.expiresAt).toBeGreaterThanOrEqual((before?.expiresAt ?? 0) + 3_600);
    await settle(ann, bob);
    await bob.messages.send(ann.id, { text: 'to the renewed one' });
    await ann.sync();
    expect(await texts(ann)).toEqual(['to the renewed one']);
  });

  test('04 §7.4: contacts hear of new devices and box for them', async () => {
    const [phone, bob] = await world.friends();
    await bob.messages.send(phone.id, { text: 'before' });
    const laptop = await addDevice(phone);
    await settle(phone, laptop, bob);
    world.clock.advance(60);
    await bob.messages.send(phone.id, { text: 'after' });
    await laptop.sync();
    expect(await texts(laptop)).toEqual(['after']);
  });

  test('03 §18.1: a device whose grant alone a contact has is removed by force only', async () => {
    const [phone] = await world.friends();
    await addDevice(phone);
    const { deviceId } = phone;
    await expect(phone.devices.remove(deviceId)).rejects.toMatchObject({
      code: 'contacts_unreached',
    });
    expect(await phone.devices.list()).toHaveLength(2);
    await phone.devices.remove(deviceId, { force: true });
  });

  test('03 §18.1: a contact that was away while the first device gave way to another still writes', async () => {
    const [phone, bob] = await world.friends();
    const laptop = await addDevice(phone);
    await settle(laptop, phone);
    await phone.devices.remove(phone.deviceId);
    await settle(laptop);
    // His grant is signed by the removed device alone; one that the laptop signed waits for him.
    world.clock.advance(7_200);
    await bob.sync();
    const { status } = await bob.messages.send(laptop.id, { text: 'still here' });
    expect(status).toBe('target_accepted');
    await laptop.sync();
    expect(await texts(laptop)).toEqual(['still here']);
    await settle(laptop, bob);
    expect(
      Object.keys((await bob.contacts.get(laptop.id)).record?.grant_from_contact?.signatures ?? {}),
    ).toEqual([laptop.deviceId]);
  });

  test.each([
    ['has read the devices just now', 0],
    ['read the devices long ago', 7_200],
  ])(
    '03 §18.1: a message of a contact who %s waits until his newer grant is read',
    async (_how, age) => {
      const [phone, bob] = await world.friends();
      const laptop = await addDevice(phone);
      await settle(laptop, phone);
      await phone.devices.remove(phone.deviceId);
      await settle(laptop);
      world.clock.advance(age);
      // His grant is of the removed device alone, and he has read no other one yet.
      const refusal = await bob.messages.send(laptop.id, { text: 'still here' }).catch((e) => e);
      expect(refusal).toMatchObject({ error: 'forbidden', kept: true });
      await bob.sync();
      await settle(laptop, bob);
      expect(await texts(laptop)).toEqual(['still here']);
    },
  );

  test('03 §15.2, §16.4: a recovered account and an old contact who accepts its invite write to each other again', async () => {
    const accountKey = nodeRandom(32);
    const [lost, bob] = [await world.person({ accountKey }), await world.person()];
    await befriend(lost, bob);
    await bob.contacts.rename(lost.id, 'Ann');
    world.clock.advance(1);
    const ann = await world.person({ accountKey, recover: true });
    world.clock.advance(7_200);
    await expect(bob.contacts.request(ann.id)).rejects.toMatchObject({ code: 'invalid_input' });
    // What he writes meanwhile waits for the grant that the consent is answered with.
    const refusal = await bob.messages.send(ann.id, { text: 'before' }).catch((error) => error);
    expect(refusal).toMatchObject({ error: 'forbidden', kept: true });
    await bob.contacts.join((await ann.contacts.invite()).text);
    expect(await bob.contacts.get(ann.id)).toMatchObject({ status: 'active' });
    await ann.sync();
    await ann.contacts.approve(bob.id);
    await settle(ann, bob);
    await bob.messages.send(ann.id, { text: 'from Bob' });
    await ann.messages.send(bob.id, { text: 'from Ann' });
    await settle(ann, bob);
    expect((await texts(ann)).sort()).toEqual(['before', 'from Ann', 'from Bob']);
    expect(await texts(bob)).toContain('from Ann');
    expect((await bob.contacts.get(ann.id)).record).toMatchObject({ alias: 'Ann' });
  });

  test('03 §11.3, 07 §B11: recoveries right after one another all take effect', async () => {
    const accountKey = nodeRandom(32);
    const { id } = await (await world.client()).setUp({ accountKey });
    for (let count = 0; count < 6; count += 1) {
      const found = await (await world.client()).setUp({ accountKey, recover: true });
      expect(found.id).toBe(id);
      expect(await found.devices.list()).toMatchObject([{ deviceId: found.deviceId }]);
    }
  });

  test('03 §11.3: with the account key alone, all old devices are given up', async () => {
    const accountKey = nodeRandom(32);
    const lost = await (await world.client()).setUp({ accountKey });
    world.clock.advance(1);
    const found = await (await world.client()).setUp({ accountKey, recover: true });
    expect(await found.devices.list()).toMatchObject([{ deviceId: found.deviceId }]);
    await expect(lost.sync()).rejects.toMatchObject({ error: 'device_unknown' });
  });
});

test('01 N4: a store belongs to one network', async () => {
  const store = new MemoryStore();
  await world.client({ store });
  const { Network } = await import('@posthouse/protocol');
  const { nodePrimitives } = await import('@posthouse/protocol/node');
  const other = new Network({ context: `neo:1:0x${'00'.repeat(20)}`, primitives: nodePrimitives });
  await expect(world.client({ store, network: other })).rejects.toMatchObject({
    code: 'store_mismatch',
  });
});
