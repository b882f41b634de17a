/** A relay that was backed up and restored with `posthouse`: nothing that comes later is lost. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { publishAccountAgain } from '../src/accounts/publish-again.ts';
import { handBackGroup } from '../src/groups/hand-back.ts';
import { type Account, type AccountEvent, MemoryStore, type Store } from '../src/index.ts';
import { admit, anotherDevice, club, groupTexts } from './groups/support.ts';
import { befriend, type RelayWithClients, texts } from './support/relay-with-clients.ts';
import { RestorableRelay } from './support/restorable-relay.ts';

let relay: RestorableRelay;
let world: RelayWithClients;
beforeAll(async () => {
  relay = await RestorableRelay.start();
  ({ world } = relay);
});
afterAll(() => relay[Symbol.asyncDispose]());

const rollbacks = (events: readonly AccountEvent[]) =>
  events.filter((event) => event.kind === 'timeline-gap' && event.cause === 'rollback').length;

async function postTexts(account: Account, channelId: string): Promise<string[]> {
  const posts = await account.channels.listPosts(channelId);
  return posts.map((post) => post.body?.text ?? '');
}

test('04 §17.1, 05 §5, 06 §5: after a restore a reader has all that is sent later, once, and is told once', async () => {
  const store: Store = new MemoryStore();
  const ann = await world.person({ prefer: 'http' });
  const bob = await world.person({ store, prefer: 'http' });
  await befriend(ann, bob);
  const groupId = await club(ann, [bob]);
  const { id: channelId, link } = await ann.channels.create({ name: 'News' });
  await bob.channels.follow(link);
  await bob.profiles.publish({ nickname: 'Bob', public_discovery: true });
  await bob.sync();
  await relay.backUp('backup');

  const send = async (...lines: string[]) => {
    for (const text of lines) {
      await ann.messages.send(bob.id, { text });
      await ann.groups.send(groupId, { text });
      await ann.channels.post(channelId, { text });
    }
  };
  await bob.profiles.publish({ nickname: 'Robert', public_discovery: true });
  await send('1', '2', '3');
  await bob.sync();
  await relay.restore('backup');

  await ann.sync();
  await send('a', 'b', 'c', 'd');
  const events = await bob.sync();
  expect(rollbacks(events)).toBe(1);
  expect(events.filter(({ kind }) => kind === 'message')).toHaveLength(4);
  const all = ['1', '2', '3', 'a', 'b', 'c', 'd'];
  expect(await texts(bob)).toEqual(all);
  expect(await groupTexts(bob, groupId)).toEqual(all);
  expect(await postTexts(bob, channelId)).toEqual(all);
  // It says so once, also to a program that starts again.
  const again = await (await world.client({ store, prefer: 'http' })).account();
  expect(await again.sync()).toEqual([]);
  // What only the account can publish is there again.
  expect((await ann.profiles.resolve(bob.id))?.nickname).toBe('Robert');
});

test('05 §7.2, 06 §5: one backup restored twice loses nothing of what is sent after either', async () => {
  const [ann, bob, eve] = (await Promise.all(
    ['a', 'b', 'e'].map(() => world.person({ prefer: 'http' })),
  )) as [Account, Account, Account];
  await befriend(ann, bob);
  const groupId = await club(ann, [bob, eve]);
  const { id: channelId, link } = await ann.channels.create({ name: 'News' });
  await bob.channels.follow(link);
  for (const each of [bob, eve]) await each.sync();
  await relay.backUp('twice');
  const send = async (...lines: string[]) => {
    for (const text of lines) {
      await ann.messages.send(bob.id, { text });
      await ann.groups.send(groupId, { text });
      await ann.channels.post(channelId, { text });
    }
  };
  await relay.restore('twice');
  for (const each of [ann, bob]) await each.sync();
  await send('1', '2', '3');
  await bob.sync();
  // The first one went on a bad disk.
  world.clock.advance(5);
  await relay.restore('twice');

  // Eve was away all the time.
  for (const each of [eve, ann]) await each.sync();
  await eve.groups.send(groupId, { text: 'from Eve' });
  await send('a', 'b');
  const events = await bob.sync();
  expect(rollbacks(events)).toBe(1);
  expect(await texts(bob)).toEqual(['1', '2', '3', 'a', 'b']);
  expect(await postTexts(bob, channelId)).toEqual(['1', '2', '3', 'a', 'b']);
  expect(await groupTexts(bob, groupId)).toEqual(['1', '2', '3', 'from Eve', 'a', 'b']);
  await eve.sync();
  expect(await groupTexts(eve, groupId)).toEqual(['from Eve', 'a', 'b']);
});

test('03 §11.1: an account that came after the backup is published again, and goes on', async () => {
  await relay.backUp('without Ann');
  const ann = await world.person({ prefer: 'http', keepKey: true });
  const bob = await world.person({ prefer: 'http', keepKey: true });
  await befriend(ann, bob);
  await relay.restore('without Ann');
  await expect(ann.sync()).rejects.toMatchObject({ error: 'route_not_found' });
  for (const each of [ann, bob]) {
    await publishAccountAgain(each);
    // To do it again does no harm.
    await publishAccountAgain(each);
    await each.sync();
  }
  await ann.messages.send(bob.id, { text: 'still here' });
  await bob.sync();
  expect(await texts(bob)).toEqual(['still here']);
});

test('03 §4: a device that was removed after the backup is out as soon as another one connects', async () => {
  const ann = await world.person({ prefer: 'http' });
  const phone = await anotherDevice(world, ann, { prefer: 'http' });
  await relay.backUp('two-devices');
  await ann.devices.remove(phone.deviceId);
  await expect(phone.sync()).rejects.toThrow();
  await relay.restore('two-devices');
  await ann.sync();
  await expect(phone.sync()).rejects.toThrow();
});

describe('05 §5.6: a group whose owner admitted C and removed B after the backup', () => {
  const namesIn = async (account: Account, groupId: string) =>
    (await account.groups.listMembers(groupId)).map((member) => member.account).toSorted();
  const kindsOf = (events: readonly AccountEvent[], groupId: string) =>
    events.flatMap((event) =>
      'groupId' in event && event.groupId === groupId ? [event.kind] : [],
    );

  test('is as it was after one command of the owner, and no member is shown what B sent meanwhile', async () => {
    const annStore = new MemoryStore();
    const ann = await world.person({ store: annStore, prefer: 'http' });
    const [bob, cem, dan, eve] = (await Promise.all(
      ['b', 'c', 'd', 'e'].map(() => world.person({ prefer: 'http' })),
    )) as [Account, Account, Account, Account];
    const groupId = await club(ann, [bob, dan, eve]);
    await ann.groups.send(groupId, { text: 'before' });
    for (const each of [bob, dan, eve]) await each.sync();
    await relay.backUp('changed-group');
    await admit(ann, groupId, [cem]);
    await ann.groups.remove(groupId, [bob.id]);
    await ann.groups.send(groupId, { text: 'lost' });
    for (const each of [ann, cem, dan]) await each.sync();
    await relay.restore('changed-group');

    // Bob's program does not know yet that he was removed.
    await bob.sync();
    await bob.groups.send(groupId, { text: 'from Bob' });
    // Eve was away: for her, Bob is a member until the owner says more.
    await eve.sync();
    expect(await groupTexts(eve, groupId)).toEqual(['before', 'from Bob']);
    for (const each of [ann, cem, dan]) {
      const events = await each.sync();
      expect(kindsOf(events, groupId)).toContain('group-blocked');
      await expect(each.groups.send(groupId, { text: 'x' })).rejects.toMatchObject({
        code: 'group_blocked',
        message: expect.stringContaining('the owner can hand it back'),
      });
      expect(kindsOf(await each.sync(), groupId)).not.toContain('group-blocked');
    }
    await expect(handBackGroup(dan, groupId)).rejects.toMatchObject({ code: 'not_permitted' });

    expect(await handBackGroup(ann, groupId)).toBe(2);
    expect(await handBackGroup(ann, groupId)).toBe(0);
    await expect(bob.groups.send(groupId, { text: 'again' })).rejects.toThrow();
    for (const each of [cem, dan, eve]) await each.sync();
    await ann.groups.send(groupId, { text: 'after' });
    await cem.groups.send(groupId, { text: 'from Cem' });
    for (const each of [ann, cem, dan, eve]) {
      await each.sync();
      expect(await namesIn(each, groupId)).toEqual(
        [ann, cem, dan, eve].map(({ id }) => id).toSorted(),
      );
      const shown = await groupTexts(each, groupId);
      expect(shown.slice(-2)).toEqual(['after', 'from Cem']);
      expect(shown).not.toContain('from Bob');
    }
    expect(await groupTexts(dan, groupId)).toEqual(['before', 'lost', 'after', 'from Cem']);
  });
});
