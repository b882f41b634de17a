/** Forgetting groups that ended or never existed, and adding groups by ID. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Account, MemoryStore } from '../../src/index.ts';
import { LyingRelay } from '../support/lying-relay.ts';
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

const person = () => relay.world.person(impatient);
const shown = async (account: Account) => (await account.groups.list()).map(({ id }) => id);

/** The host refuses, as it does for an account that is not a member. */
function refuse(method: string): void {
  relay.overHttp.set(method, (response) => {
    response.writeHead(403, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ code: 'forbidden', message: 'the account may not' }));
  });
}

describe('forget removes a group', () => {
  test('that is closed', async () => {
    const [ann, bob] = [await person(), await person()];
    const id = await club(ann, [bob]);
    await expect(bob.groups.forget(id)).rejects.toMatchObject({ code: 'invalid_input' });
    await ann.groups.close(id);
    for (const each of [ann, bob]) {
      await each.sync();
      await each.groups.forget(id);
      expect(await shown(each)).toEqual([]);
      expect(await each.sync()).toEqual([]);
    }
  });

  test('whose history does not verify; it is read again when it does', async () => {
    const [ann, bob] = [await person(), await person()];
    const id = await club(ann, [bob]);
    await ann.groups.update(id, { name: 'Society' });
    relay.lie('group.sync', ({ events, ...page }) => ({
      ...page,
      events: events.map((event: { payload: object }) => ({
        ...event,
        payload: { ...event.payload, name: 'Altered' },
      })),
    }));
    await bob.groups.sync(id);
    await bob.groups.forget(id);
    expect(await shown(bob)).toEqual([]);
    relay.behave();
    const { relayId } = await ann.groups.get(id);
    expect(await bob.groups.add({ groupId: id, relayId })).toMatchObject({
      membership: 'member',
      hasKey: true,
      state: { name: 'Society' },
    });
  });

  test('whose creation was never answered, or whose host is gone', async () => {
    const [ann, bob] = [await person(), await person()];
    const id = await club(ann, [bob]);
    await bob.groups.forget(id, { evenAsMember: true });
    expect(await shown(bob)).toEqual([]);
    block(relay, 'group.create');
    await expect(bob.groups.create({ name: 'Never' })).rejects.toMatchObject(unreachable);
    const [never] = await shown(bob);
    await bob.groups.forget(never as string);
    expect(await shown(bob)).toEqual([]);
    expect(await bob.sync()).toEqual([]);
  });
});

test('05 §13.2: a refused creation leaves no group in the list', async () => {
  const ann = await person();
  const founding = ann.groups.create({ name: 'Too large', capacity: Number.MAX_SAFE_INTEGER });
  await expect(founding).rejects.toMatchObject({ error: 'bad_request' });
  expect(await shown(ann)).toEqual([]);
});

describe('add finds a group', () => {
  test('by the right host after a wrong one', async () => {
    const store = new MemoryStore();
    const phone = await relay.world.person({ ...impatient, store });
    const id = await club(phone);
    const { relayId } = await phone.groups.get(id);
    const client = await relay.world.client(impatient);
    const approval = await phone.devices.approve(await client.requestDevice(phone.publicKey));
    const laptop = await client.completeDevice(approval, { accountPublicKey: phone.publicKey });
    const wrong = { groupId: id, relayId: `0x${'77'.repeat(20)}` };
    await expect(laptop.groups.add(wrong)).rejects.toMatchObject({ code: 'no_relay' });
    expect(await shown(laptop)).toEqual([]);
    expect(await laptop.groups.add({ groupId: id, relayId })).toMatchObject({
      membership: 'member',
    });
  });

  test('only if it exists and the account is a member', async () => {
    const [ann, bob] = [await person(), await person()];
    const id = await club(ann);
    const { relayId } = await ann.groups.get(id);
    const wrong = {
      invalid_input: { groupId: 'grp_short', relayId },
      relay_refused: { groupId: `grp_${'A'.repeat(22)}`, relayId },
      not_a_member: { groupId: id, relayId },
    };
    for (const [code, address] of Object.entries(wrong)) {
      await expect(bob.groups.add(address)).rejects.toMatchObject({ code });
      expect(await shown(bob)).toEqual([]);
    }
  });
});

describe('a host that refuses a member', () => {
  test('ends the group until it is added again; its keys are active again then', async () => {
    const [ann, bob] = [await RestartableClient.begin(relay), await RestartableClient.begin(relay)];
    const id = await club(ann.account, [bob.account]);
    refuse('group.sync');
    expect(await bob.account.sync()).toEqual([{ kind: 'group-ended', groupId: id }]);
    relay.behave();
    expect(await bob.account.sync()).toEqual([]);
    await bob.account.groups.sync(id);
    expect(await bob.account.groups.get(id)).toMatchObject({ membership: 'member', hasKey: true });
    // The key is shared with another device again.
    const tablet = await anotherDevice(relay.world, bob.account, impatient);
    await exchange(bob.account, tablet);
    await bob.account.groups.send(id, { text: 'here again' });
    await tablet.sync();
    expect(await groupTexts(tablet, id)).toEqual(['here again']);
  });
});

test('an application refused for good leaves the group unchanged', async () => {
  const [ann, bob, carl] = [await person(), await person(), await person()];
  const id = await club(ann, [bob]);
  const { invite, text } = await ann.groups.invite(id);
  await ann.groups.revokeInvite(id, invite.invite_id);
  await ann.groups.remove(id, [bob.id]);
  await bob.sync();
  for (const each of [bob, carl]) {
    await expect(each.groups.join(text)).rejects.toMatchObject({ error: 'forbidden' });
  }
  expect(await bob.groups.get(id)).toMatchObject({ membership: 'ended' });
  expect(await shown(carl)).toEqual([]);
});

test('05 §14.4: nicknames end with the membership of their owner or of their reader', async () => {
  const [ann, bob, carl] = [await person(), await person(), await person()];
  const id = await club(ann, [bob, carl]);
  const nicknames = async () => {
    const members = await bob.groups.listMembers(id);
    return members.flatMap(({ nickname }) => nickname ?? []).sort();
  };
  await ann.groups.setNickname(id, 'Annie');
  await carl.groups.setNickname(id, 'Charlie');
  await bob.sync();
  expect(await nicknames()).toEqual(['Annie', 'Charlie']);
  await ann.groups.remove(id, [carl.id]);
  await admit(ann, id, [carl]);
  await bob.sync();
  expect(await nicknames()).toEqual(['Annie']);
  await ann.groups.remove(id, [bob.id]);
  await bob.sync();
  await admit(ann, id, [bob]);
  expect(await bob.groups.get(id)).toMatchObject({ membership: 'member' });
  expect(await nicknames()).toEqual([]);
});
