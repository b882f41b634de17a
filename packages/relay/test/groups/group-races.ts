/** People of a relay whose calls about one group race with each other. */
import { managementHash } from '@posthouse/protocol';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import { expect } from 'vitest';
import { TestGroup } from '../fixtures/group.ts';
import { readChain } from '../fixtures/group-reader.ts';
import type { Person } from '../fixtures/person.ts';
import { Races, type RacingCall, type RelayProcesses, type Rows } from '../fixtures/races.ts';
import { share } from '../support/chance.ts';
import { network } from '../support/in-process-relay.ts';

/** How often a race is run: `npm run test:long` has more. */
export const rounds = share === 'part' ? 3 : 6;

const tables = [
  'groups',
  'group_members',
  'group_bans',
  'group_events',
  'group_messages',
  'group_epochs',
  'group_boxes',
  'group_intervals',
  'group_invites',
  'group_applications',
  'group_recoveries',
  'group_stagings',
] as const;

/** Rows of a group in each table. */
type RowCounts = Readonly<Record<(typeof tables)[number], number>>;

/** How many rows a call adds to tables, 0 by default. */
export type TableGrowth = Partial<RowCounts>;

type People = Readonly<Record<'ann' | 'ben' | 'cem' | 'dora' | 'emil' | 'fay', Person>>;

/** Its methods need no `this`: tests take those that they use. */
export class GroupRaces {
  readonly ground: Races['ground'];
  readonly ann: Person;
  readonly ben: Person;
  readonly cem: Person;
  readonly dora: Person;
  readonly emil: Person;
  readonly fay: Person;
  readonly #course: Races;

  private constructor(course: Races, people: People) {
    this.#course = course;
    this.ground = course.ground;
    this.ann = people.ann;
    this.ben = people.ben;
    this.cem = people.cem;
    this.dora = people.dora;
    this.emil = people.emil;
    this.fay = people.fay;
  }

  static async open(processes: RelayProcesses): Promise<GroupRaces> {
    const course = new Races(processes);
    const { ground } = course;
    const ann = await ground.register('ann', ['phone', 'laptop']);
    const [ben, cem, dora, emil, fay] = (await Promise.all(
      ['ben', 'cem', 'dora', 'emil', 'fay'].map((name) => ground.register(name)),
    )) as [Person, Person, Person, Person, Person];
    return new GroupRaces(course, { ann, ben, cem, dora, emil, fay });
  }

  readonly race = (...calls: readonly RacingCall[]) => this.#course.race(...calls);

  /** Returns the rows of a table that are about a group. */
  readonly rowsOf = async ({ groupId }: TestGroup, table: string): Promise<Rows> => {
    return (await this.#course.rows(table)).filter(({ group_id }) => group_id === groupId);
  };

  /** Counts the rows of a group in each table. */
  readonly counts = async (group: TestGroup): Promise<RowCounts> => {
    const entries = tables.map(async (table) => [table, (await this.rowsOf(group, table)).length]);
    return Object.fromEntries(await Promise.all(entries));
  };

  /** Expects what a call of the winner alone would have added, and nothing else. */
  readonly expectGrowth = async (group: TestGroup, before: RowCounts, growth: TableGrowth) => {
    const wanted = Object.fromEntries(
      tables.map((table) => [table, before[table] + (growth[table] ?? 0)]),
    );
    expect(await this.counts(group)).toEqual(wanted);
  };

  /** Expects the body that was accepted as the last event of the chain. */
  readonly expectLast = async (group: TestGroup, body: JsonObject) => {
    const last = (await this.rowsOf(group, 'group_events')).at(-1);
    expect(last?.payload).toBe(canonicalJson(body));
    const [row] = await this.rowsOf(group, 'groups');
    expect(row?.chain_head).toBe(managementHash(network, body as never));
    expect(row?.sequence).toBe(last?.sequence);
    expect(row?.epoch).toBe(last?.epoch);
    const { state } = await readChain(this.ground, group, this.ann);
    expect([state.head, state.sequence, state.epoch, state.members.size]).toEqual([
      ...[row?.chain_head, row?.sequence, row?.epoch, row?.member_count],
    ]);
    group.head = state.head;
  };

  /** Creates Ann's group, with some others of whom the first are its administrators. */
  readonly found = async (admins: readonly Person[], members: readonly Person[] = []) => {
    const group = await TestGroup.create(this.ground, this.ann);
    if (admins.length + members.length > 0) await group.admit(...admins, ...members);
    for (const person of admins) await group.setRole(person, 'administrator');
    return group;
  };

  /** Signs chain events on the group's head. */
  readonly links = (
    group: TestGroup,
    some: readonly {
      readonly by: Person;
      readonly device?: string;
      readonly kind: Parameters<TestGroup['link']>[0];
      readonly facts: object;
      readonly method?: string;
    }[],
  ) =>
    some.map(({ by, device = 'phone', kind, facts, method = kind }) => {
      const params = group.link(kind, facts as never, { by, device });
      return { by, device, method, params };
    });
}
