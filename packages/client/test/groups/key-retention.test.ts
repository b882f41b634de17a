/** Keys without another copy are never lost: after a discarded request, a lost answer, or a lie. */

import { type GroupKeyPage, Network } from '@posthouse/protocol';
import { nodePrimitives } from '@posthouse/protocol/node';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { LyingRelay } from '../support/lying-relay.ts';
import { network } from '../support/relay-with-clients.ts';
import { block, impatient, RestartableClient, unreachable } from '../support/restartable-client.ts';
import { admit, anotherDevice, club, exchange, groupTexts } from './support.ts';

let relay: LyingRelay;
beforeAll(async () => {
  relay = await LyingRelay.start({ host: { groups: true } });
});
afterEach(() => relay.behave());
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

const week = 604_800;

/** Ann owns a group, Bob is a member; both can restart. */
async function setScene() {
  const [ann, bob] = [await RestartableClient.begin(relay), await RestartableClient.begin(relay)];
  const id = await club(ann.account, [bob.account]);
  return { ann, bob, id };
}

/** The commit takes effect, and its answer is lost. */
function loseCommit(): void {
  relay.lose('group.secret.rotation.commit', 1);
  relay.when.set('group.secret.rotation.commit', () => block(relay, 'group.sync'));
}

describe('05 §13.26: rotations', () => {
  test('a rotation discarded after it took effect keeps the owner’s new key', async () => {
    const { ann, bob, id } = await setScene();
    loseCommit();
    const rotating = ann.account.groups.rotate(id, { newOwnerKey: true });
    await expect(rotating).rejects.toMatchObject(unreachable);
    relay.behave();
    const before = (await ann.account.groups.get(id)).state;
    await (await ann.again()).groups.rotate(id, { fresh: true });
    const after = (await ann.account.groups.get(id)).state;
    // The first one and the fresh one.
    expect(after?.epoch).toBe((before?.epoch ?? 0) + 2);
    await ann.account.groups.send(id, { text: 'fresh' });
    await bob.account.sync();
    expect(await groupTexts(bob.account, id)).toEqual(['fresh']);
  });

  test('discarding a rotation keeps its key while the host is unreachable', async () => {
    const { ann, id } = await setScene();
    loseCommit();
    const rotating = ann.account.groups.rotate(id, { newOwnerKey: true });
    await expect(rotating).rejects.toMatchObject(unreachable);
    const again = ann.account.groups.rotate(id, { fresh: true });
    await expect(again).rejects.toMatchObject(unreachable);
    relay.behave();
    await ann.account.groups.send(id, { text: 'with the new key' });
    expect(await ann.account.groups.get(id)).toMatchObject({ hasKey: true });
  });

  test('two devices of the owner that prepare in turn both finish', async () => {
    const { ann, bob, id } = await setScene();
    const phone = ann.account;
    const tablet = await anotherDevice(relay.world, phone, impatient);
    await exchange(phone, tablet);
    block(relay, 'group.secret.rotation.commit');
    await expect(phone.groups.rotate(id)).rejects.toMatchObject(unreachable);
    relay.world.clock.advance(60);
    await expect(tablet.groups.rotate(id)).rejects.toMatchObject(unreachable);
    relay.behave();
    // The phone must add a box to what it believes to be its own preparation.
    const carl = await RestartableClient.begin(relay);
    await admit(phone, id, [carl.account]);
    await phone.groups.rotate(id);
    await tablet.groups.rotate(id);
    await tablet.groups.send(id, { text: 'by both' });
    for (const each of [phone, bob.account, carl.account]) {
      await each.sync();
      expect(await groupTexts(each, id)).toEqual(['by both']);
    }
  });

  test('a new owner key requested for a rotation under way is not ignored', async () => {
    const { ann, id } = await setScene();
    const keyOf = async () =>
      (await ann.account.groups.get(id)).state?.members.get(ann.account.id)
        ?.member_encryption_public_key;
    const before = await keyOf();
    block(relay, 'group.secret.rotation.commit');
    await expect(ann.account.groups.rotate(id)).rejects.toMatchObject(unreachable);
    relay.behave();
    await (await ann.again()).groups.rotate(id, { newOwnerKey: true });
    expect(await keyOf()).not.toBe(before);
    loseCommit();
    await expect(ann.account.groups.rotate(id)).rejects.toMatchObject(unreachable);
    relay.behave();
    const middle = await keyOf();
    await (await ann.again()).groups.rotate(id, { newOwnerKey: true });
    expect(await keyOf()).not.toBe(middle);
    await ann.account.groups.send(id, { text: 'still here' });
  });
});

describe('05 §17.4: recoveries', () => {
  /** Every box of a page, broken. */
  const broken = ({ keys, ...page }: GroupKeyPage) => ({
    ...page,
    keys: keys.map(({ relay_secret_box: box, ...entry }) => ({
      ...entry,
      relay_secret_box: { ...box, sealed_secret: 'A'.repeat(80) },
    })),
  });

  test('the key of a request that the host did not list is used after its approval', async () => {
    const { ann, bob, id } = await setScene();
    await bob.account.groups.requestRecovery(id);
    relay.lie('group.member.recovery.list', (page) => ({ ...page, requests: [] }));
    await bob.account.sync();
    relay.behave();
    await ann.account.groups.approveRecovery(id, [bob.account.id]);
    await (await bob.again()).sync();
    await bob.account.groups.send(id, { text: 'with the new key' });
    expect(await bob.account.groups.get(id)).toMatchObject({ hasKey: true });
  });

  test('a key approved while its boxes did not open outlives the next request', async () => {
    const { ann, bob, id } = await setScene();
    await bob.account.groups.requestRecovery(id);
    await ann.account.groups.approveRecovery(id, [bob.account.id]);
    relay.lie('group.key.sync', broken);
    relay.world.clock.advance(week + 1);
    await bob.account.groups.requestRecovery(id);
    relay.behave();
    await (await bob.again()).groups.send(id, { text: 'with the first new key' });
    await ann.account.sync();
    expect(await groupTexts(ann.account, id)).toEqual(['with the first new key']);
  });
});

describe('01 E2: a member key that nothing can be sealed to', () => {
  const unusable = 'A'.repeat(43);
  const { x25519 } = nodePrimitives;
  /** A malicious account has a zero key; a helping client seals to it anyway. */
  const evil = { isAwake: false };
  const publicKey = (key: Uint8Array) =>
    evil.isAwake ? new Uint8Array(32) : x25519.publicKey(key);
  const shared = (key: Uint8Array, other: Uint8Array) =>
    x25519.shared(key, other) ?? (evil.isAwake ? new Uint8Array(32).fill(7) : undefined);
  const evilNetwork = new Network({
    context: network.context,
    primitives: {
      ...nodePrimitives,
      x25519: {
        publicKey,
        shared,
        agree(key, other) {
          const secret = shared(key, other);
          return secret && { publicKey: publicKey(key), shared: secret };
        },
      },
    },
  });

  test('is reported with its account, and the operation fails', async () => {
    const { ann, bob, id } = await setScene();
    await ann.account.groups.setRole(id, { account: bob.account.id, role: 'administrator' });
    const eve = await RestartableClient.begin(relay, undefined, { network: evilNetwork });
    const { text } = await ann.account.groups.invite(id);
    evil.isAwake = true;
    await eve.account.groups.join(text);
    evil.isAwake = false;
    const [application] = await ann.account.groups.listApplications(id);
    expect(application?.application.member_encryption_public_key).toBe(unusable);
    const named = {
      code: 'invalid_input',
      message: expect.stringContaining(eve.account.id),
    };
    const approving = ann.account.groups.approve(id, [eve.account.id]);
    await expect(approving).rejects.toMatchObject(named);

    // A client of an administrator that seals to it anyway.
    const client = await relay.world.client({
      ...impatient,
      network: evilNetwork,
      store: bob.store,
    });
    const helper = await client.account();
    await helper.sync();
    evil.isAwake = true;
    await helper.groups.approve(id, [eve.account.id]);
    evil.isAwake = false;
    await expect(ann.account.groups.rotate(id)).rejects.toMatchObject(named);
    await ann.account.groups.remove(id, [eve.account.id]);
    await ann.account.groups.rotate(id);
    await ann.account.groups.send(id, { text: 'without Eve' });
    await (await bob.again()).sync();
    expect(await groupTexts(bob.account, id)).toEqual(['without Eve']);
  });
});
