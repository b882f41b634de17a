import type { JsonObject } from '@posthouse/protocol/json';
import { afterEach, expect, test } from 'vitest';
import type { Row } from '../../src/storage/types.ts';
import { TestGroup } from '../fixtures/group.ts';
import { GroupOutcomes } from '../fixtures/group-outcomes.ts';
import { readChain, readKeys, verified } from '../fixtures/group-reader.ts';
import { KillableRelay } from '../fixtures/killable-relay.ts';
import type { Person } from '../fixtures/person.ts';
import { seed, upTo } from '../support/chance.ts';
import { killAll } from '../support/command.ts';
import { dump, engine, RelayData } from '../support/engine.ts';

afterEach(() => killAll());

const groups = 3;
/** As many as take about twenty seconds. */
const kills = engine === 'postgres' ? 10 : 22;

/** One group with everybody who is about it, and what they know to have happened. */
interface Club {
  readonly group: TestGroup;
  /** Owner, administrator, a member for good, and two who come and go. */
  readonly people: readonly [Person, Person, Person, Person, Person];
  /** Sequences of confirmed messages by their IDs. */
  readonly sent: Map<string, number>;
  /** Uses of invitations that confirmed admissions have taken. */
  readonly uses: Map<string, number>;
}

async function openClub(
  ground: KillableRelay,
  outcomes: GroupOutcomes,
  name: string,
): Promise<Club> {
  const people = (await Promise.all(
    ['ann', 'ben', 'cem', 'dora', 'emil'].map((each) => ground.register(`${each} ${name}`)),
  )) as [Person, Person, Person, Person, Person];
  const [ann, ben, cem] = people;
  const group = await TestGroup.create(ground, ann);
  outcomes.know(group);
  await group.admit(ben, cem);
  await group.setRole(ben, 'administrator');
  return { group, people, sent: new Map(), uses: new Map() };
}

/** Everything that can happen to a group, over and over. */
async function live({ group, people, uses }: Club, isOver: () => boolean): Promise<void> {
  const [, ben, cem, dora, emil] = people;
  const by = { by: ben };
  const acts: readonly (() => Promise<unknown>)[] = [
    async () => {
      const invite = await group.invite({ max_uses: 3 }, by);
      await group.apply(dora, invite);
      await group.apply(emil, invite);
      await group.approve([dora, emil], by);
      uses.set(invite.invite_id, 2);
    },
    () => group.rotate(),
    () => group.requestRecovery(cem),
    () => group.recover([cem], by),
    () => group.update({ name: `club of ${group.head.slice(8, 16)}` }),
    () => group.remove([dora], by),
    () => group.setRole(cem, 'administrator'),
    () => group.leave(emil),
    () => group.setRole(cem, 'member'),
    () => group.ban([dora], by),
    () => group.unban([dora]),
  ];
  for (let index = 0; !isOver(); index += 1) await acts[index % acts.length]?.();
}

/** Messages of a permanent member, each repeated until its result is known. */
async function chat(
  ground: KillableRelay,
  { group, sent }: Club,
  { by, isOver }: { readonly by: Person; readonly isOver: () => boolean },
): Promise<void> {
  const session = by.session();
  let after = -1;
  let epoch = 0;
  while (!isOver()) {
    const params = { group_id: group.groupId, after, limit: 500 };
    const page = (await ground.call('group.sync', params, { session })) as unknown as {
      readonly events: readonly { readonly sequence: number; readonly epoch: number }[];
    };
    ({ sequence: after, epoch } = page.events.at(-1) ?? { sequence: after, epoch });
    for (let count = 0; count < 4 && !isOver(); count += 1) {
      const message = group.message(by, epoch);
      try {
        const answer = await ground.call('group.message.send', message, { session });
        sent.set(message.message_id, (answer as { sequence: number }).sequence);
      } catch (error) {
        // The epoch moved on.
        expect(error).toHaveProperty('code', 'state_conflict');
        break;
      }
    }
  }
}

async function expectWhole(
  ground: KillableRelay,
  outcomes: GroupOutcomes,
  { group, people, sent }: Club,
): Promise<void> {
  const { groupId: group_id } = group;
  const [ann, ben] = people;
  for (const person of [ann, ben]) {
    const { state, history } = await readChain(ground, group, person);
    expect(state.head).toBe(group.head);
    // Epochs follow each other, and the material of the current one is served and opens.
    const epochs = history.flatMap((period) => period.epochs);
    expect(epochs).toEqual(epochs.map((_, index) => index));
    const keys = verified(await readKeys(ground, group, person, { after: state.epoch - 1 }));
    expect([...keys.keys()]).toEqual([state.epoch]);
  }
  const events: { sequence: number; epoch: number; payload: JsonObject }[] = [];
  for (let isMore = true; isMore; ) {
    const params = { group_id, after: events.at(-1)?.sequence ?? -1, limit: 500 };
    const page = await ground.call('group.sync', params, { session: ann.session() });
    const { events: some, has_more } = page as unknown as { events: []; has_more: boolean };
    events.push(...some);
    isMore = has_more;
  }
  expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index));
  const messages = events.filter(({ payload }) => payload.message_id !== undefined);
  const bySequence = messages.map(({ sequence, payload }) => [payload.message_id, sequence]);
  expect(new Set(bySequence.map(([id]) => id)).size).toBe(bySequence.length);
  // Every message that was confirmed, where it was confirmed; no other has happened.
  expect(bySequence).toEqual([...sent].sort(([, a], [, b]) => a - b));
  expect(events.length - messages.length).toBe(outcomes.accepted.get(group_id)?.length);
}

/** What no caller sees: counts and boxes that go with what is stored. */
function expectConsistent(tables: Record<string, unknown[]>, clubs: readonly Club[]): void {
  for (const { group, uses } of clubs) {
    const rows = (table: string) =>
      (tables[table] as Row[]).filter((row) => row.group_id === group.groupId);
    const [row] = rows('groups') as [Row];
    expect(rows('group_members')).toHaveLength(row.member_count as number);
    expect(rows('group_bans')).toHaveLength(row.ban_count as number);
    const epochs = rows('group_epochs').map(({ epoch }) => epoch as number);
    expect(epochs.toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: (row.epoch as number) + 1 }, (_, epoch) => epoch),
    );
    expect(rows('group_epochs').filter(({ superseded }) => superseded === 0)).toHaveLength(1);
    for (const { invite_id, uses: stored, pending } of rows('group_invites')) {
      const expected = uses.get(invite_id as string);
      if (expected !== undefined) expect([invite_id, stored]).toEqual([invite_id, expected]);
      const rested = rows('group_applications').filter((each) => each.invite_id === invite_id);
      expect(rested).toHaveLength(pending as number);
    }
    for (const { box_set, box_count } of rows('group_stagings')) {
      const boxes = rows('group_boxes').filter((each) => each.box_set === box_set);
      expect(boxes).toHaveLength(box_count as number);
    }
    const open = rows('group_intervals').filter(({ message_to }) => message_to === null);
    const members = rows('group_members').map(({ account }) => account);
    expect(new Set(open.map(({ device_id }) => device_id)).size).toBe(open.length);
    for (const { account } of open) expect(members).toContain(account);
    const set = rows('group_boxes').filter(({ box_set }) => box_set === row.box_set);
    for (const member of members) expect(set.map(({ account }) => account)).toContain(member);
  }
}

test(`05 §12.6: after a crash at any point, confirmed writes exist exactly once and nothing is partial (seed ${seed})`, {
  timeout: 180_000,
}, async () => {
  await using data = await RelayData.empty();
  const ground = await KillableRelay.start(data);
  const outcomes = new GroupOutcomes(ground);
  ground.outcomes = outcomes;
  const clubs: Club[] = [];
  for (let index = 0; index < groups; index += 1) {
    clubs.push(await openClub(ground, outcomes, `${index}`));
  }
  let isOver = false;
  const storm = clubs.flatMap((club) => [
    live(club, () => isOver),
    ...club.people.slice(0, 2).map((by) => chat(ground, club, { by, isOver: () => isOver })),
  ]);
  // Any failure ends the test at once.
  const failure = Promise.all(storm).then(() => new Promise<never>(() => {}));
  const moments = Array.from({ length: kills }, () => ({ answers: upTo(60), turns: upTo(40) }));
  for (const moment of moments) {
    await Promise.race([ground.killAfter(moment), failure]);
    await ground.revive();
  }
  await Promise.race([ground.answersFromNow(50), failure]);
  isOver = true;
  await Promise.all(storm);
  expect(ground.lost.answers).toBeGreaterThan(kills);
  for (const club of clubs) await expectWhole(ground, outcomes, club);
  await ground.stop();
  await using storage = await data.open();
  expectConsistent(await dump(storage), clubs);
});
