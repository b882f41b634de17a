/** Groups of a host that was backed up and restored with `posthouse`: what each person meets then (05 §5.6). */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { handBackGroup } from '../../src/groups/hand-back.ts';
import type { Account, AccountEvent } from '../../src/index.ts';
import type { RelayWithClients } from '../support/relay-with-clients.ts';
import { RestorableRelay } from '../support/restorable-relay.ts';
import { anotherDevice, club, groupTexts } from './support.ts';

let relay: RestorableRelay;
let world: RelayWithClients;
let [ann, bob, cem, eve] = [] as unknown as [Account, Account, Account, Account];
/** Devices of one account. */
let [danPhone, danLaptop] = [] as unknown as [Account, Account];
const groups = { quiet: '', closed: '', changed: '', since: '', stale: '', away: '' };
/** What each sync after the restore reported, by person. */
const told = new Map<Account, readonly AccountEvent[]>();

const kinds = (person: Account, groupId: string) =>
  (told.get(person) ?? []).flatMap((event) =>
    'groupId' in event && event.groupId === groupId ? [event.kind] : [],
  );
const syncTold = async (person: Account) => void told.set(person, await person.sync());

// One restore for all: each test has a group of its own.
beforeAll(async () => {
  relay = await RestorableRelay.start();
  ({ world } = relay);
  [ann, bob, cem, eve] = (await Promise.all(
    ['a', 'b', 'c', 'e'].map(() => world.person({ prefer: 'http' })),
  )) as [Account, Account, Account, Account];
  for (const name of ['quiet', 'closed', 'changed', 'stale'] as const) {
    groups[name] = await club(ann, [bob, cem, eve], name);
  }
  danPhone = await world.person({ prefer: 'http' });
  danLaptop = await anotherDevice(world, danPhone, { prefer: 'http' });
  groups.away = await club(danPhone, [bob, cem], 'away');
  for (const each of [ann, bob, cem, eve, danPhone, danLaptop]) await each.sync();
  await relay.backUp('backup');
  await danPhone.groups.remove(groups.away, [bob.id]);
  await ann.groups.close(groups.closed);
  await ann.groups.remove(groups.changed, [bob.id]);
  await ann.groups.remove(groups.stale, [bob.id]);
  await ann.groups.close(groups.changed);
  groups.since = await club(ann, [cem], 'since');
  for (const each of [ann, bob, cem]) await each.sync();
  await relay.restore('backup');
  // Eve was away: she knows of nothing that was lost.
  for (const each of [bob, cem, eve]) await syncTold(each);
});
afterAll(() => relay[Symbol.asyncDispose]());

test('05 §5.6: a first call over a session of before the restore misses no loss', async () => {
  const { stale } = groups;
  // Ann has called nothing since; her session ends with this call.
  const events = await ann.groups.sync(stale);
  expect(events).toMatchObject([{ kind: 'group-blocked', blocked: { code: 'host_restored' } }]);
  await expect(ann.groups.send(stale, { text: 'for Bob, too?' })).rejects.toMatchObject({
    code: 'group_blocked',
  });
  expect(await handBackGroup(ann, stale)).toBe(1);
  await ann.groups.send(stale, { text: 'among us' });
  await bob.groups.sync(stale).catch(() => undefined);
  expect(await groupTexts(bob, stale)).toEqual([]);
  await cem.groups.sync(stale);
  expect(await groupTexts(cem, stale)).toEqual(['among us']);
});

test('05 §5.6: members change a group again after the first sync of its owner, who need not do anything', async () => {
  expect(kinds(bob, groups.quiet)).toEqual([]);
  await expect(bob.groups.leave(groups.quiet)).rejects.toMatchObject({
    message: expect.stringMatching(/temporarily_unavailable.*once its owner's app was online/),
  });
  await bob.groups.send(groups.quiet, { text: 'goodbye' });
  await syncTold(ann);
  expect(kinds(ann, groups.quiet)).toEqual(['group-message']);
  await bob.groups.leave(groups.quiet);
  await cem.sync();
  expect((await cem.groups.listMembers(groups.quiet)).map(({ account }) => account)).not.toContain(
    bob.id,
  );
});

test('05 §5.6: a group that was closed is closed again by one command of its owner', async () => {
  const { closed } = groups;
  // Those who read its end keep it.
  expect(kinds(cem, closed)).toEqual([]);
  await eve.groups.send(closed, { text: 'still open?' });
  expect(kinds(ann, closed)).toEqual(['group-blocked']);
  expect(await handBackGroup(ann, closed)).toBe(1);
  for (const each of [ann, cem, eve]) {
    const events = await each.sync();
    expect(events.map(({ kind }) => kind)).not.toContain('group-blocked');
    await expect(each.groups.send(closed, { text: 'x' })).rejects.toMatchObject({
      message: expect.stringContaining('closed'),
    });
  }
  expect(await handBackGroup(ann, closed)).toBe(0);
  expect((await ann.groups.get(closed))?.blocked).toBeUndefined();
});

test('05 §5.6: what was lost before the end comes back with it', async () => {
  const { changed } = groups;
  await bob.groups.send(changed, { text: 'from Bob' });
  expect(kinds(ann, changed)).toEqual(['group-blocked']);
  expect(await handBackGroup(ann, changed)).toBe(2);
  for (const each of [ann, cem, eve]) {
    await each.sync();
    expect(await groupTexts(each, changed)).toEqual([]);
    const members = await each.groups.listMembers(changed);
    expect(members.map(({ account }) => account)).not.toContain(bob.id);
  }
  await expect(bob.groups.send(changed, { text: 'again' })).rejects.toThrow();
});

test('05 §5.6: a device of the owner that was away does not end the waiting for the one that knows', async () => {
  const { away } = groups;
  const leave = () => bob.groups.leave(away);
  const refused = { message: expect.stringContaining('temporarily_unavailable') };
  // It read all that there is, and knows of no loss.
  await syncTold(danLaptop);
  expect(kinds(danLaptop, away)).toEqual([]);
  await expect(leave()).rejects.toMatchObject(refused);
  await syncTold(danPhone);
  expect(kinds(danPhone, away)).toContain('group-blocked');
  await danLaptop.sync();
  await expect(leave()).rejects.toMatchObject(refused);
  expect(await handBackGroup(danPhone, away)).toBe(1);
  await danLaptop.sync();
  for (const each of [danPhone, danLaptop]) {
    const members = await each.groups.listMembers(away);
    expect(members.map(({ account }) => account).sort()).toEqual([cem.id, danPhone.id].sort());
  }
});
