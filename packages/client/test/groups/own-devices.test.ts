/** Group keys and secrets shared between own devices, and which of them are used (05 §16). */

import { encodeBase64url, type GroupKeyPage } from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type Account, MemoryStore, type Store } from '../../src/index.ts';
import { LyingRelay } from '../support/lying-relay.ts';
import { RawSender } from '../support/raw-sender.ts';
import { network } from '../support/relay-with-clients.ts';
import { admit, anotherDevice, club, exchange, groupTexts } from './support.ts';

let relay: LyingRelay;
beforeAll(async () => {
  relay = await LyingRelay.start({ host: { groups: true } });
});
afterEach(() => relay.behave());
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

interface Scene {
  readonly ann: Account;
  readonly phone: Account;
  readonly tablet: Account;
  readonly phoneStore: Store;
  readonly tabletStore: Store;
  readonly id: string;
  /** Sends what a device of the account, whether wrong or broken, might send. */
  readonly say: (name: string, content: Record<string, unknown>) => Promise<void>;
}

/** Ann's group with Bob, an account with a phone and a tablet. */
async function setScene(): Promise<Scene> {
  const { world } = relay;
  const [phoneStore, tabletStore] = [new MemoryStore(), new MemoryStore()];
  const ann = await world.person();
  const phone = await world.person({ store: phoneStore });
  const id = await club(ann, [phone]);
  const tablet = await anotherDevice(world, phone, { store: tabletStore });
  const say = async (name: string, content: Record<string, unknown>) => {
    await using sender = new RawSender(world, phoneStore);
    await sender.send(phone.id, { ...content, $type: network.type(name) } as never);
  };
  return { ann, phone, tablet, phoneStore, tabletStore, id, say };
}

const anyKey = () => encodeBase64url(nodeRandom(32));

test('a key that is not the account’s member key does not replace the active key', async () => {
  const { ann, phone, tablet, id, say } = await setScene();
  const { relayId } = await phone.groups.get(id);
  const state = (key: string) => ({
    states: [{ group_id: id, relay_id: relayId, member_encryption_private_key: key }],
  });
  await say('account.group.state.sync', state(anyKey()));
  await ann.groups.rotate(id);
  await ann.groups.send(id, { text: 'still readable' });
  await tablet.sync();
  expect(await groupTexts(tablet, id)).toEqual(['still readable']);
  expect(await tablet.groups.get(id)).toMatchObject({ membership: 'member', hasKey: true });
});

test('a device whose group ended reads again after the other device was admitted again', async () => {
  const { ann, phone, tablet, id } = await setScene();
  await ann.groups.remove(id, [phone.id]);
  await exchange(phone, tablet);
  expect(await tablet.groups.get(id)).toMatchObject({ membership: 'ended', hasKey: false });
  await admit(ann, id, [phone]);
  await exchange(phone, tablet);
  await ann.groups.send(id, { text: 'welcome back' });
  await tablet.sync();
  expect(await groupTexts(tablet, id)).toEqual(['welcome back']);
});

test('a key that arrives late opens earlier boxes', async () => {
  const { ann, phone, phoneStore, id } = await setScene();
  // A device that received the group with a wrong key only.
  const late = await relay.world.client({ store: new MemoryStore() });
  const request = await late.requestDevice(phone.publicKey);
  const approval = await phone.devices.approve(request);
  const device = await late.completeDevice(approval, { accountPublicKey: phone.publicKey });
  const { relayId } = await phone.groups.get(id);
  await device.groups.add({ groupId: id, relayId });
  expect(await device.groups.get(id)).toMatchObject({ membership: 'member', hasKey: false });
  await ann.groups.send(id, { text: 'waits' });
  await device.groups.sync(id);
  expect(await groupTexts(device, id)).toEqual([]);
  expect(await device.groups.listEntries(id, { limit: 1, newestFirst: true })).toMatchObject([
    { outcome: 'pending' },
  ]);
  expect(await phoneStore.read((tx) => tx.list('group-keys'))).toHaveLength(1);
  await exchange(device, phone);
  expect(await groupTexts(device, id)).toEqual(['waits']);
});

test('05 §7.5: an old key that arrives late opens its epochs after a change of keys', async () => {
  const { world } = relay;
  const phoneStore = new MemoryStore();
  const phone = await world.person({ store: phoneStore });
  const id = await club(phone);
  const { relayId } = await phone.groups.get(id);
  const client = await world.client();
  const approval = await phone.devices.approve(await client.requestDevice(phone.publicKey));
  const device = await client.completeDevice(approval, { accountPublicKey: phone.publicKey });
  await device.groups.add({ groupId: id, relayId });
  await phone.groups.send(id, { text: 'under the old key' });
  const [[, old]] = (await phoneStore.read((tx) => tx.list('group-keys'))) as [[string, string]];
  await phone.groups.rotate(id, { newOwnerKey: true });
  await device.groups.sync(id);
  expect(await groupTexts(device, id)).toEqual([]);
  await using sender = new RawSender(world, phoneStore);
  const key = JSON.parse(old).privateKey;
  const states = [{ group_id: id, relay_id: relayId, member_encryption_private_key: key }];
  await sender.send(phone.id, { $type: network.type('account.group.state.sync'), states });
  await device.sync();
  expect(await groupTexts(device, id)).toEqual(['under the old key']);
  expect(await device.groups.get(id)).toMatchObject({ membership: 'member', hasKey: false });
});

test('05 §16: a key requested by another device is unknown until that device shares it', async () => {
  const { ann, phone, tablet, id } = await setScene();
  await tablet.groups.requestRecovery(id);
  await ann.groups.approveRecovery(id, [phone.id]);
  await phone.groups.sync(id);
  expect(await phone.groups.get(id)).toMatchObject({ membership: 'member', hasKey: false });
  const sending = phone.groups.send(id, { text: 'no' });
  await expect(sending).rejects.toMatchObject({ code: 'group_key_missing' });
  await exchange(tablet, phone);
  expect(await phone.groups.get(id)).toMatchObject({ hasKey: true });
  await phone.groups.send(id, { text: 'yes' });
});

test('05 §16: a missing key is requested once; a device does not share received keys', async () => {
  const { ann, phone, tablet, id } = await setScene();
  const sent = () => relay.asked.get('message.send') ?? 0;
  await tablet.groups.requestRecovery(id);
  await ann.groups.approveRecovery(id, [phone.id]);
  const before = sent();
  for (let times = 0; times < 3; times += 1) await phone.sync();
  expect(sent()).toBe(before + 1);
  for (let times = 0; times < 2; times += 1) await tablet.sync();
  const told = sent();
  for (let times = 0; times < 2; times += 1) await phone.sync();
  expect(await phone.groups.get(id)).toMatchObject({ hasKey: true });
  expect(sent()).toBe(told);
});

/** Breaks every box of a page. */
function broken({ keys, ...page }: GroupKeyPage): object {
  const bad = { alg: 'X25519-HKDF-SHA256-AES256GCM', enc: anyKey(), sealed_secret: 'A'.repeat(80) };
  return { ...page, keys: keys.map((entry) => ({ ...entry, relay_secret_box: bad })) };
}

test('a secret from another device is used once verified history has its epoch', async () => {
  const { ann, phone, tablet, phoneStore, id, say } = await setScene();
  await ann.groups.send(id, { text: 'before' });
  await ann.groups.rotate(id);
  await phone.sync();
  const epoch = (await phone.groups.get(id)).state?.epoch ?? 0;
  const kept = await phoneStore.read((tx) => tx.list('group-epoch-secrets', { reverse: true }));
  const secret = JSON.parse(kept[0]?.[1] ?? '');
  await ann.groups.send(id, { text: 'sealed anew' });
  relay.lie('group.key.sync', broken);
  const secretOf = (application_secret: string, of: number) => ({
    secrets: [{ group_id: id, epoch: of, application_secret }],
  });
  await say('account.group.history_secret.sync', secretOf(anyKey(), epoch));
  await tablet.sync();
  // The secret is unverified: a message it does not open stays pending, and is not rejected.
  expect(await groupTexts(tablet, id)).toEqual(['before']);
  expect(await tablet.groups.listEntries(id, { limit: 1, newestFirst: true })).toMatchObject([
    { outcome: 'pending' },
  ]);
  await say('account.group.history_secret.sync', secretOf(secret, epoch));
  await tablet.sync();
  expect(await groupTexts(tablet, id)).toEqual(['before', 'sealed anew']);
  // Nothing is sealed with a secret that this device did not verify.
  const sending = tablet.groups.send(id, { text: 'no' });
  await expect(sending).rejects.toMatchObject({ code: 'group_key_missing' });
  relay.behave();
  await tablet.groups.send(id, { text: 'yes' });
});

test('a secret of a future epoch is staged, and used when the epoch is there', async () => {
  const { ann, phone, tablet, tabletStore, id, say } = await setScene();
  const before = await tablet.groups.get(id);
  const epoch = (before.state?.epoch ?? 0) + 1;
  await say('account.group.history_secret.sync', {
    secrets: [{ group_id: id, epoch, application_secret: anyKey() }],
  });
  await tablet.sync();
  expect(await tablet.groups.get(id)).toEqual(before);
  expect(await tabletStore.read((tx) => tx.list('group-staged-secrets'))).toHaveLength(1);
  await ann.groups.rotate(id);
  await ann.groups.send(id, { text: 'with the true secret' });
  await Promise.all([phone.sync(), tablet.sync()]);
  expect(await groupTexts(tablet, id)).toEqual(['with the true secret']);
  expect(await tabletStore.read((tx) => tx.list('group-staged-secrets'))).toEqual([]);
});

test('05 §17.1: a device gets the groups of the account, by its key as by an approval', async () => {
  const { world } = relay;
  const accountKey = nodeRandom(32);
  const phone = await world.person({ accountKey, keepKey: true });
  const id = await club(phone);
  // Otherwise it would share the new key with the laptop unasked.
  await phone.sync();
  const laptop = await world.person({ accountKey });
  await exchange(laptop, phone);
  // What the tablet asks for would reach the laptop too.
  expect(await laptop.groups.get(id)).toMatchObject({ membership: 'member', hasKey: true });
  const tablet = await anotherDevice(world, phone);
  await exchange(tablet, phone);
  expect(await tablet.groups.get(id)).toMatchObject({ membership: 'member', hasKey: true });
  await tablet.groups.send(id, { text: 'for all three' });
  for (const device of [phone, laptop]) {
    await device.sync();
    expect(await groupTexts(device, id)).toEqual(['for all three']);
  }
});
