import { beforeEach, describe, expect, test, vi } from 'vitest';
import { MemoryBus } from '../../../src/notifications/memory-bus.ts';
import { type Connection, Connections } from '../../fixtures/connections.ts';
import { TestGroup } from '../../fixtures/group.ts';
import type { Hint } from '../../fixtures/hints.ts';
import { newMemberKey } from '../../fixtures/member-key.ts';
import { Person } from '../../fixtures/person.ts';
import { inProcessRelay } from '../../support/in-process-relay.ts';

const patience = { timeout: 10_000, interval: 5 };

const relay = inProcessRelay();
let board: Connections;
/** Owner, administrator, two members, and an outsider. */
const ann = relay.person('ann', ['phone', 'laptop']);
let ada: Person;
let ben: Person;
let cem: Person;
let eve: Person;
let group: TestGroup;
let everybody: Map<string, Connection>;

beforeEach(async () => {
  board = new Connections(relay);
  [ada, ben, cem, eve] = (await Promise.all(
    ['ada', 'ben', 'cem', 'eve'].map((name) => Person.register(relay, name)),
  )) as [Person, Person, Person, Person];
  group = await TestGroup.create(relay, ann);
  await group.admit(ada, ben, cem);
  await group.setRole(ada, 'administrator');
  everybody = new Map();
  for (const [name, person] of Object.entries({ ann, ada, ben, cem })) {
    everybody.set(name, await board.withGroups(person, group));
  }
});

const of = (name: string) => everybody.get(name) as Connection;
/** What each heard, of those who heard anything, once all hints were sent. */
const heard = async (): Promise<Record<string, Hint[]>> => {
  await board.settled();
  const all = [...everybody].map(([name, connection]) => [name, connection.hints()] as const);
  return Object.fromEntries(all.filter(([, hints]) => hints.length > 0));
};
/** The same hints for each of these people. */
const each = (names: string, ...hints: Hint[]) =>
  Object.fromEntries(names.split(' ').map((name) => [name, hints]));
const recoverCode = (params: object, by: Person, method = 'reject') =>
  relay.codeOf(`group.member.recovery.${method}`, params, { session: by.session() });

const applications: Hint = ['applications'];
const recoveries: Hint = ['recoveries'];
const timeline = (head: number): Hint => ['timeline', head];

describe('05 §15.2: group.timeline.changed', () => {
  const causes: [string, () => Promise<unknown>][] = [
    ['group.update', () => group.update({ name: 'other' })],
    ['group.role.update', () => group.setRole(ben, 'administrator')],
    ['group.owner.transfer', () => group.transfer(ada)],
    ['group.member.unban', () => group.unban([eve])],
    ['group.member.ban of no member', () => group.ban([eve])],
    ['group.secret.rotation.commit', () => group.rotate()],
    ['group.close', () => group.close()],
  ];
  test.each(causes)('%s notifies every subscriber once', async (_name, act) => {
    await act();
    expect(await heard()).toEqual(each('ann ada ben cem', timeline(3)));
  });

  test('05 §13.28: a message notifies every subscriber, a repeat of it none', async () => {
    const message = group.message(ben, 1);
    const session = ben.session();
    await relay.call('group.message.send', message, { session });
    expect(await heard()).toEqual(each('ann ada ben cem', timeline(3)));
    await relay.call('group.message.send', message, { session });
    expect(await heard()).toEqual({});
  });

  test('an approval notifies all of the timeline and managers of the list', async () => {
    await group.apply(eve, await group.invite());
    await heard();
    await group.approve([eve]);
    expect(await heard()).toEqual({
      ...each('ben cem', timeline(3)),
      ...each('ann ada', timeline(3), applications),
    });
  });

  test('only connections that subscribed the group', async () => {
    const other = await TestGroup.create(relay, ann);
    const idle = await board.connect(ann, 'laptop');
    await of('ann').subscribeGroups(group, other);
    await other.update({ name: 'other' });
    expect(await heard()).toEqual(each('ann', timeline(1)));
    expect(idle.hints()).toEqual([]);
  });

  test('a refused write notifies no connection', async () => {
    const body = group.link('group.update', { name: 'x' }, { by: ben });
    expect(await relay.codeOf('group.update', body, { session: ben.session() })).toBe('forbidden');
    expect(await heard()).toEqual({});
  });

  test('the text is the one of 02 §12.1', async () => {
    await group.update({ name: 'other' });
    expect(of('ben').texts()).toEqual([
      JSON.stringify({
        jsonrpc: '2.0',
        method: 'group.timeline.changed',
        params: { group_id: group.groupId, head: 3 },
      }),
    ]);
  });
});

describe('05 §15.3: group.application.changed, for owner and administrators', () => {
  test('created, replaced, rejected; not for an identical retry', async () => {
    const invite = await group.invite();
    const application = await group.apply(eve, invite);
    expect(await heard()).toEqual(each('ann ada', applications));
    const session = eve.session();
    await relay.call('group.application.submit', application, { session });
    expect(await heard()).toEqual({});
    await group.apply(eve, invite);
    expect(await heard()).toEqual(each('ann ada', applications));
    const params = { group_id: group.groupId, accounts: [eve.account] };
    await relay.call('group.application.reject', params, { session: ada.session() });
    expect(await heard()).toEqual(each('ann ada', applications));
  });

  test('a ban of an applicant, and of another account', async () => {
    await group.apply(eve, await group.invite());
    await heard();
    await group.ban([eve]);
    expect(await heard()).toEqual({
      ...each('ben cem', timeline(3)),
      ...each('ann ada', timeline(3), applications),
    });
    await group.ban([eve]);
    expect(await heard()).toEqual(each('ann ada ben cem', timeline(4)));
  });

  test('an invitation revoked with an application, and without', async () => {
    const [used, unused] = [await group.invite(), await group.invite()];
    await group.apply(eve, used);
    await heard();
    const revoke = async ({ invite_id }: { invite_id: string }) => {
      const params = { group_id: group.groupId, invite_id };
      await relay.call('group.invite.revoke', params, { session: ann.session() });
    };
    await revoke(unused);
    expect(await heard()).toEqual({});
    await revoke(used);
    expect(await heard()).toEqual(each('ann ada', applications));
  });

  test('not a former administrator', async () => {
    await group.setRole(ada, 'member');
    await heard();
    await group.apply(eve, await group.invite());
    expect(await heard()).toEqual(each('ann', applications));
  });
});

describe('05 §15.4: group.member.recovery.changed', () => {
  const submitted = async (person: Person) => {
    await group.requestRecovery(person);
    return heard();
  };

  test("a member's request: itself, owner and administrators", async () => {
    expect(await submitted(ben)).toEqual(each('ann ada ben', recoveries));
  });

  test("an administrator's and the owner's: itself and the owner", async () => {
    expect(await submitted(ada)).toEqual(each('ann ada', recoveries));
    expect(await submitted(ann)).toEqual(each('ann', recoveries));
  });

  test('replaced, withdrawn, rejected', async () => {
    await submitted(ben);
    expect(await submitted(ben)).toEqual(each('ann ada ben', recoveries));
    const params = { group_id: group.groupId, accounts: [ben.account] };
    expect(await recoverCode(params, ben)).toBe('ok');
    expect(await heard()).toEqual(each('ann ada ben', recoveries));
    await submitted(ben);
    expect(await recoverCode(params, ada)).toBe('ok');
    expect(await heard()).toEqual(each('ann ada ben', recoveries));
  });

  test('approved: with the timeline', async () => {
    await submitted(ben);
    await group.recover([ben]);
    expect(await heard()).toEqual({
      cem: [timeline(3)],
      ...each('ann ada ben', timeline(3), recoveries),
    });
  });

  test.each(['leave', 'remove', 'ban'] as const)(
    'deleted by a %s: owner and administrators, not who left',
    async (how) => {
      await submitted(ben);
      if (how === 'leave') await group.leave(ben);
      else await group[how]([ben]);
      await vi.waitFor(() => expect(board.hub.listenersOf(ben.account)).toHaveLength(1), patience);
      await vi.waitFor(() => expect(of('ann').hints()).toContainEqual(timeline(3)), patience);
      await group.update({ name: 'later' });
      await vi.waitFor(() => expect(of('cem').hints()).toContainEqual(timeline(4)), patience);
      expect(of('ada').hints()).toContainEqual(recoveries);
      expect(of('ben').hints()).toEqual([]);
    },
  );

  test("the deletion of an administrator's: the owner alone", async () => {
    await group.setRole(ben, 'administrator');
    await submitted(ada);
    await group.remove([ada]);
    await vi.waitFor(() => expect(of('cem').hints()).toContainEqual(timeline(4)), patience);
    expect(of('ann').hints()).toContainEqual(recoveries);
    for (const name of ['ben', 'ada']) expect(of(name).hints()).not.toContainEqual(recoveries);
  });

  test('a removal without requests publishes no recovery hint', async () => {
    await group.remove([ben]);
    await vi.waitFor(() => expect(of('cem').hints()).toEqual([timeline(3)]), patience);
    expect(of('ann').hints()).toEqual([timeline(3)]);
  });

  test("deleted with the owner's new key: the owner", async () => {
    await submitted(ann);
    await group.rotate(newMemberKey());
    expect(await heard()).toEqual({
      ...each('ada ben cem', timeline(3)),
      ann: [timeline(3), recoveries],
    });
  });
});

describe('an account that may not read is not notified', () => {
  /** Waits until a permitted subscriber got a head: all subscribers were checked with it. */
  const arrives = (name: string, head: number) =>
    vi.waitFor(() => expect(of(name).hints()).toContainEqual(timeline(head)), patience);

  test.each(['leave', 'remove', 'ban'] as const)('after a %s', async (how) => {
    if (how === 'leave') await group.leave(ben);
    else await group[how]([ben]);
    await group.update({ name: 'later' });
    await arrives('cem', 4);
    expect(of('ben').hints()).toEqual([]);
    // Its connection is not over.
    expect(of('ben').bound.dead).toBe(false);
    await expect(of('ben').subscribeGroups(group)).rejects.toHaveProperty('code', 'forbidden');
    await of('ben').subscribeGroups();
  });

  test('05 §13.29: admitted again on the same connection, it is notified again', async () => {
    await group.remove([ben]);
    await arrives('cem', 3);
    await group.update({ name: 'unread' });
    await arrives('cem', 4);
    expect(of('ben').hints()).toEqual([]);
    await group.admit(ben);
    await arrives('ben', 5);
    await group.update({ name: 'later' });
    expect(of('ben').hints()).toEqual([timeline(6)]);
    await of('ben').subscribeGroups(group);
    await group.update({ name: 'last' });
    expect(of('ben').hints()).toEqual([timeline(7)]);
  });

  test('admitted again, a manager is notified of lists again', async () => {
    await group.remove([ada]);
    await arrives('cem', 3);
    await group.apply(eve, await group.invite());
    await arrives('ann', 3);
    await group.admit(ada);
    await arrives('ada', 4);
    await group.setRole(ada, 'administrator');
    await group.requestRecovery(ben);
    expect(of('ada').hints()).toEqual([timeline(5), recoveries]);
  });

  test('02 §12.3: hints that wait for a slow connection are dropped', async () => {
    const slow = of('ben');
    slow.isSlow = true;
    await group.update({ name: 'sent' });
    await group.update({ name: 'waits' });
    expect(slow.hints()).toEqual([timeline(3)]);
    await group.remove([ben]);
    await arrives('cem', 5);
    slow.drain();
    expect(slow.hints()).toEqual([]);
  });

  test('a device that subscribes again before it is checked keeps the new subscription', async () => {
    const look = Promise.withResolvers<void>();
    board.afterLook = () => look.promise;
    await group.remove([ben]);
    await group.admit(ben);
    await of('ben').subscribeGroups(group);
    look.resolve();
    await arrives('cem', 4);
    await group.update({ name: 'later' });
    expect(of('ben').hints()).toContainEqual(timeline(5));
  });

  test('02 §10.3: a removed device, at once', async () => {
    const laptop = await board.connect(ann, 'laptop');
    await laptop.subscribeGroups(group);
    await ann.publishState(await ann.state({ devices: ['phone'] }));
    await group.update({ name: 'later' });
    await arrives('ann', 3);
    expect(laptop.hints()).toEqual([]);
    expect(laptop.bound.dead).toBe(true);
  });

  test('a session that expired', async () => {
    of('ben').bound.cap(relay.clock.now());
    await group.update({ name: 'later' });
    expect(await heard()).toEqual(each('ann ada cem', timeline(3)));
  });

  test('the remaining members are notified when storage can be read again', async () => {
    const { metrics } = relay.context;
    board.beforeLook = () => Promise.reject(new Error('away'));
    await group.remove([ben]);
    await vi.waitFor(() => expect(metrics.value('hints_delayed')).toBe(1), patience);
    expect(await heard()).toEqual({});
    board.beforeLook = () => {};
    relay.clock.advance(2);
    await arrives('cem', 3);
    expect(of('ben').hints()).toEqual([]);
  });
});

describe('an event committed during a subscription', () => {
  /** Something happens after it was looked up that ben may read, before he hears of the group. */
  const between = async (act: () => Promise<unknown>) => {
    await of('ben').subscribeGroups();
    // His device has its interval: nothing but this look is needed.
    const { storage } = relay.context;
    const { read } = storage;
    storage.read = async (work) => {
      const found = await read.call(storage, work);
      storage.read = read;
      await act();
      return found as never;
    };
    await of('ben').subscribeGroups(group);
  };

  test('is notified', async () => {
    await between(() => group.update({ name: 'other' }));
    expect(await heard()).toEqual(each('ann ada ben cem', timeline(3)));
  });

  test.each(['leave', 'remove', 'ban'] as const)(
    'is not heard of by who lost the right with a %s',
    async (how) => {
      await between(() => (how === 'leave' ? group.leave(ben) : group[how]([ben])));
      await group.update({ name: 'later' });
      await vi.waitFor(() => expect(of('cem').hints()).toContainEqual(timeline(4)), patience);
      expect(of('ben').hints()).toEqual([]);
      await expect(of('ben').subscribeGroups(group)).rejects.toHaveProperty('code', 'forbidden');
    },
  );

  test('reaches a subscriber confirmed before another account lost its right', async () => {
    await between(() => group.remove([cem]));
    await vi.waitFor(() => expect(of('ben').hints()).toEqual([timeline(3)]), patience);
    expect(of('cem').hints()).toEqual([]);
  });
});

describe('02 §12.3: hints are merged', () => {
  test('a slow reader gets the newest hint of each kind, never a queue', async () => {
    const slow = of('ann');
    slow.isSlow = true;
    const invite = await group.invite();
    for (let count = 0; count < 5; count += 1) {
      await group.update({ name: `name ${count}` });
      await group.apply(eve, invite);
      await group.requestRecovery(ben);
    }
    expect(slow.hints()).toEqual([timeline(3)]);
    slow.drain();
    expect(slow.hints().sort()).toEqual([applications, recoveries, timeline(7)]);
    slow.drain();
    expect(slow.hints()).toEqual([]);
  });

  test('a list without a version is notified again once its hint was sent', async () => {
    const slow = of('ann');
    const invite = await group.invite();
    await group.apply(eve, invite);
    await group.apply(eve, invite);
    expect(slow.hints()).toEqual([applications, applications]);
    slow.isSlow = true;
    for (let count = 0; count < 3; count += 1) await group.apply(eve, invite);
    slow.drain();
    expect(slow.hints()).toEqual([applications, applications]);
  });

  test('hints of another group are not lost', async () => {
    const other = await TestGroup.create(relay, ann);
    const slow = of('ann');
    await slow.subscribeGroups(group, other);
    slow.isSlow = true;
    for (const name of ['one', 'two']) {
      await group.update({ name });
      await other.update({ name });
    }
    slow.drain();
    expect(slow.hints(other)).toEqual([timeline(2)]);
  });

  test("unsubscribing drops the group's waiting hints only", async () => {
    const other = await TestGroup.create(relay, ann);
    const slow = of('ann');
    await slow.subscribeGroups(group, other);
    slow.isSlow = true;
    for (const name of ['one', 'two']) {
      await group.update({ name });
      await other.update({ name });
    }
    slow.hints();
    await slow.subscribeGroups(other);
    slow.drain();
    expect(slow.hints()).toEqual([timeline(2)]);
  });

  test('05 §13.29: a successful subscription sends no hint of earlier events', async () => {
    // A process that hears of everything late.
    const bus = new MemoryBus((error) => {
      throw error;
    });
    const slow = new Connections(relay, bus);
    const early = await slow.withGroups(cem, group);
    await group.update({ name: 'other' });
    const late = await slow.withGroups(ben, group);
    bus.publish([{ kind: 'group-timeline', group: group.groupId, head: 3, accessEnded: 0 }]);
    expect(early.hints()).toEqual([timeline(3)]);
    expect(late.hints()).toEqual([]);
  });
});
