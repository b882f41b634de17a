/** People of groups, who write to them whatever happens to the relay. */
import { ProtocolError } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { expect } from 'vitest';
import type { Row } from '../../src/storage/types.ts';
import { LostAnswer } from '../fixtures/call-attempts.ts';
import { TestGroup } from '../fixtures/group.ts';
import type { GroupOutcomes } from '../fixtures/group-outcomes.ts';
import { readChain, readKeys, verified } from '../fixtures/group-reader.ts';
import type { KillableRelay } from '../fixtures/killable-relay.ts';
import type { Person } from '../fixtures/person.ts';
import type { IsOver, Tables, Writers } from './writers.ts';

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
async function live({ group, people, uses }: Club, isOver: IsOver): Promise<void> {
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
  { by, isOver }: { readonly by: Person; readonly isOver: IsOver },
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
function expectConsistent(tables: Tables, { group, uses }: Club): void {
  const rows = (table: string) =>
    (tables[table] as readonly Row[]).filter((row) => row.group_id === group.groupId);
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

interface Creation {
  readonly group: TestGroup;
  /** Whether its creation was acknowledged. */
  readonly isKnown: boolean;
}

/** Creations by a client that gives up when an answer is lost. */
async function createOnce(
  ground: KillableRelay,
  { people: [ann] }: Club,
  { created, isOver }: { readonly created: Creation[]; readonly isOver: IsOver },
): Promise<void> {
  while (!isOver()) {
    const { group, params } = TestGroup.draft(ground, ann);
    const creating = ground.call('group.create', params, { session: ann.session(), isOnce: true });
    const isKnown = await creating.then(
      () => true,
      (error: unknown) => {
        if (error instanceof LostAnswer) return false;
        throw error;
      },
    );
    created.push({ group, isKnown });
  }
}

/** A creation that was not acknowledged happened as a whole or not at all. */
async function expectWholeOrAbsent(ground: KillableRelay, { group, isKnown }: Creation) {
  try {
    const { state } = await readChain(ground, group, group.owner);
    expect([state.head, state.sequence, state.epoch]).toEqual([group.head, 0, 0]);
    expect(verified(await readKeys(ground, group, group.owner)).size).toBe(1);
  } catch (error) {
    if (isKnown || !(error instanceof ProtocolError)) throw error;
    expect(error.code).toBe('not_found');
  }
}

/** Writers of a group, and of groups that are created all the time. */
export class GroupWriters implements Writers {
  readonly #ground: KillableRelay;
  readonly #outcomes: GroupOutcomes;
  readonly #club: Club;
  readonly #created: Creation[] = [];

  private constructor(ground: KillableRelay, outcomes: GroupOutcomes, club: Club) {
    this.#ground = ground;
    this.#outcomes = outcomes;
    this.#club = club;
  }

  static async open(ground: KillableRelay, outcomes: GroupOutcomes): Promise<GroupWriters> {
    const club = await openClub(ground, outcomes, 'club');
    const [, ben] = club.people;
    ground.useSocket(ben);
    ground.subscribe(ben, 'group.subscribe', [club.group.groupId]);
    return new GroupWriters(ground, outcomes, club);
  }

  async write(isOver: IsOver): Promise<unknown> {
    const [ann, ben] = this.#club.people;
    return await Promise.all([
      live(this.#club, isOver),
      chat(this.#ground, this.#club, { by: ann, isOver }),
      chat(this.#ground, this.#club, { by: ben, isOver }),
      createOnce(this.#ground, this.#club, { created: this.#created, isOver }),
    ]);
  }

  async check(): Promise<void> {
    await expectWhole(this.#ground, this.#outcomes, this.#club);
    for (const creation of this.#created) await expectWholeOrAbsent(this.#ground, creation);
  }

  checkRows(tables: Tables): void {
    expectConsistent(tables, this.#club);
  }

  async heads(): Promise<ReadonlyMap<string, number>> {
    const { group } = this.#club;
    const { state } = await readChain(this.#ground, group, group.owner);
    return new Map([[group.groupId, Math.max(state.sequence, ...this.#club.sent.values())]]);
  }
}
