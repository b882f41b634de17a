/** The life of a group of three accounts with two devices each, on a real relay. */
import { nodeRandom } from '@posthouse/protocol/node';
import { expect, test } from 'vitest';
import { type Account, isClientError } from '../../src/index.ts';
import { relayWithClients, withoutStatus } from '../support/relay-with-clients.ts';
import { admit, anotherDevice, club, exchange, groupTexts } from './support.ts';

const world = relayWithClients({ host: { groups: true } });

/** An account with two devices. */
async function twofold(): Promise<[Account, Account]> {
  const phone = await world.person();
  return [phone, await anotherDevice(world, phone)];
}

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'done',
    (error: unknown) => (isClientError(error) ? error.code : String(error)),
  );

test('05 §17.3: create, join, send, reply, nicknames', async () => {
  const [ann, bob] = [await world.person(), await world.person()];
  const { id } = await ann.groups.create({ name: 'Club', description: 'of old' });
  expect(await ann.groups.get(id)).toMatchObject({
    membership: 'member',
    hasKey: true,
    position: 0,
  });
  const { text } = await ann.groups.invite(id);
  expect(await bob.groups.preview(text)).toMatchObject({ name: 'Club', member_count: 1 });
  expect(await bob.groups.join(text)).toMatchObject({ membership: 'applied', hasKey: false });
  expect(await bob.sync()).toEqual([]);
  expect(await ann.groups.listApplications(id)).toMatchObject([
    { application: { account: bob.id } },
  ]);
  await ann.groups.approve(id, [bob.id]);
  expect(await bob.sync()).toEqual([{ kind: 'group-joined', groupId: id }]);
  expect(await bob.groups.get(id)).toMatchObject({ membership: 'member', hasKey: true });

  const { sequence } = await bob.groups.send(id, { text: 'hello' });
  await ann.sync();
  await ann.groups.send(id, { text: 'welcome', replyTo: sequence });
  await bob.groups.setNickname(id, 'Bobby');
  await Promise.all([ann.sync(), bob.sync()]);
  for (const reader of [ann, bob]) {
    expect(await groupTexts(reader, id)).toEqual(['hello', 'welcome']);
    const [hello, welcome] = await reader.groups.listMessages(id);
    expect(await reader.groups.getReplyTarget(welcome!)).toEqual(hello);
    expect(await reader.groups.getReplyTarget(hello!)).toBeUndefined();
    expect(await reader.groups.listMembers(id)).toMatchObject(
      [ann, bob]
        .map(({ id: account }) => ({ account, ...(account === bob.id && { nickname: 'Bobby' }) }))
        .sort((a, b) => (a.account < b.account ? -1 : 1)),
    );
  }
  await bob.groups.setNickname(id, null);
  expect(await ann.sync()).toEqual([
    { kind: 'group-nickname', groupId: id, account: bob.id, nickname: null },
  ]);
});

test('05 §16: a new device gets the key from the other one, reads and sends', async () => {
  const [ann, bob] = [await world.person(), await world.person()];
  const id = await club(ann, [bob]);
  await ann.groups.send(id, { text: 'before the tablet' });
  const tablet = await anotherDevice(world, bob);
  expect(await tablet.groups.get(id)).toMatchObject({ membership: 'member', hasKey: true });
  await tablet.groups.send(id, { text: 'from the tablet' });
  await Promise.all([ann.sync(), bob.sync(), tablet.sync()]);
  // 05 §10.2: another device reads messages from its first call on, and all management events.
  expect(await groupTexts(tablet, id)).toEqual(['from the tablet']);
  expect(await groupTexts(bob, id)).toEqual(['before the tablet', 'from the tablet']);
  expect((await tablet.groups.get(id)).state).toEqual((await ann.groups.get(id)).state);
});

test('05 §16: after one device joins, the other one reads too', async () => {
  const ann = await world.person();
  const [phone, tablet] = await twofold();
  const id = await club(ann, [phone]);
  await exchange(phone, tablet);
  expect(await tablet.groups.get(id)).toMatchObject({ membership: 'member', hasKey: true });
  await ann.groups.send(id, { text: 'to both' });
  await exchange(phone, tablet);
  expect([await groupTexts(phone, id), await groupTexts(tablet, id)]).toEqual([
    ['to both'],
    ['to both'],
  ]);
});

test('05 §9: remove, ban and join again', async () => {
  const [ann, bob, carl] = [await world.person(), await world.person(), await world.person()];
  const id = await club(ann, [bob, carl]);
  await bob.groups.setNickname(id, 'Bobby');
  await ann.groups.remove(id, [bob.id]);
  expect(withoutStatus(await bob.sync())).toEqual([{ kind: 'group-ended', groupId: id }]);
  expect(await codeOf(bob.groups.send(id, { text: 'still here' }))).toBe('not_a_member');
  const told = await carl.sync();
  expect(told).toContainEqual(
    expect.objectContaining({ kind: 'group-member', account: bob.id, change: 'left', by: ann.id }),
  );
  await carl.groups.send(id, { text: 'without Bob' });

  await admit(ann, id, [bob]);
  expect(await bob.groups.get(id)).toMatchObject({ membership: 'member', hasKey: true });
  await carl.groups.send(id, { text: 'with Bob' });
  await Promise.all([ann.sync(), bob.sync()]);
  expect(await groupTexts(bob, id)).toEqual(['with Bob']);
  const named = (await ann.groups.listMembers(id)).filter(({ nickname }) => nickname !== undefined);
  expect(named).toEqual([]);

  await ann.groups.ban(id, [bob.id]);
  await bob.sync();
  const { text } = await ann.groups.invite(id);
  expect(await codeOf(bob.groups.join(text))).toBe('relay_refused');
  expect((await ann.groups.get(id)).state?.bans).toEqual(new Set([bob.id]));
  await ann.groups.unban(id, [bob.id]);
  await bob.groups.join(text);
  await ann.groups.reject(id, [bob.id]);
  expect(await codeOf(ann.groups.approve(id, [bob.id]))).toBe('invalid_input');
});

test('05 §9.3, §17.4: a key lost on every device is recovered', async () => {
  const accountKey = nodeRandom(32);
  const ann = await world.person();
  const id = await club(ann, [await world.person({ accountKey })]);
  const bob = await world.person({ accountKey, recover: true });
  const { relayId } = await ann.groups.get(id);
  expect(await bob.groups.add({ groupId: id, relayId })).toMatchObject({ hasKey: false });
  expect(await codeOf(bob.groups.send(id, { text: 'no' }))).toBe('group_key_missing');

  const first = await bob.groups.requestRecovery(id);
  expect(await bob.groups.requestRecovery(id)).toBe(first);
  expect(await ann.groups.listRecoveries(id)).toMatchObject([{ request: { account: bob.id } }]);
  await ann.groups.rejectRecovery(id, [bob.id]);
  await bob.sync();
  expect(await codeOf(ann.groups.approveRecovery(id, [bob.id]))).toBe('invalid_input');

  await bob.groups.requestRecovery(id);
  await bob.groups.rejectRecovery(id, [bob.id]);
  await bob.groups.requestRecovery(id);
  await ann.groups.approveRecovery(id, [bob.id]);
  expect(await bob.sync()).toContainEqual({ kind: 'group-joined', groupId: id });
  await bob.groups.send(id, { text: 'with the new key' });
  await ann.sync();
  expect(await groupTexts(ann, id)).toEqual(['with the new key']);
  expect(await ann.groups.listRecoveries(id)).toEqual([]);
});

test('05 §13.27: after a rotation with a new owner key, every device reads on', async () => {
  const [ann, annsTablet] = await twofold();
  const [bob, bobsTablet] = await twofold();
  const id = await club(ann, [bob]);
  await exchange(ann, annsTablet);
  await exchange(bob, bobsTablet);
  const before = (await ann.groups.get(id)).state;
  await ann.groups.rotate(id, { newOwnerKey: true });
  const after = (await ann.groups.get(id)).state;
  expect(after?.client_secret_commitment).not.toBe(before?.client_secret_commitment);
  expect(after?.members.get(ann.id)).not.toEqual(before?.members.get(ann.id));
  await exchange(ann, annsTablet);
  await ann.groups.send(id, { text: 'fresh' });
  for (const reader of [ann, annsTablet, bob, bobsTablet]) {
    await reader.sync();
    expect(await groupTexts(reader, id)).toEqual(['fresh']);
  }
  expect(await codeOf(bob.groups.rotate(id))).toBe('not_permitted');
});

test('05 §6: roles, properties, transfer, leave, close', async () => {
  const [ann, bob, carl] = [await world.person(), await world.person(), await world.person()];
  const id = await club(ann, [bob]);
  expect(await codeOf(bob.groups.invite(id))).toBe('not_permitted');
  await ann.groups.setRole(id, { account: bob.id, role: 'administrator' });
  await admit(bob, id, [carl]);
  await ann.groups.update(id, { name: 'Society', invitePolicy: 'members_shareable' });
  await carl.sync();
  expect((await carl.groups.get(id)).state).toMatchObject({ name: 'Society', owner: ann.id });
  const { invite } = await carl.groups.invite(id, { maxUses: 2 });
  expect(await bob.groups.listInvites(id)).toHaveLength(3);
  await carl.groups.revokeInvite(id, invite.invite_id);
  expect(await carl.groups.listInvites(id)).toEqual([]);
  expect(await codeOf(ann.groups.leave(id))).toBe('not_permitted');
  await ann.groups.transfer(id, bob.id);
  await ann.groups.leave(id);
  expect(await ann.groups.get(id)).toMatchObject({ membership: 'ended' });
  expect(await codeOf(carl.groups.close(id))).toBe('not_permitted');
  await bob.groups.close(id);
  expect(await codeOf(carl.groups.send(id, { text: 'too late' }))).toBe('not_permitted');
  await carl.sync();
  expect((await carl.groups.get(id)).state?.status).toBe('closed');
  expect(await codeOf(carl.groups.send(id, { text: 'too late' }))).toBe('not_permitted');
});
