/** A group whose people lose their member keys and ask for new ones. */
import {
  type GroupMemberRecoveryRequest,
  type GroupParams,
  type GroupRecoveryList,
  verifyGroupRecoveryList,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { expect } from 'vitest';
import { Person } from '../support/people.ts';
import { network, World } from '../support/world.ts';
import { TestGroup } from './support.ts';

/** Seconds a request is open. */
export const wait = 1_000;

/** Ann founded the group; Ben and Cem are its administrators, Dora and Emil members. */
export interface Club {
  readonly world: World;
  readonly group: TestGroup;
  readonly ann: Person;
  readonly ben: Person;
  readonly cem: Person;
  readonly dora: Person;
  readonly emil: Person;
  /** Methods as this group's people call them; the codes they are answered with. */
  submit(request: object, by?: Person): Promise<unknown>;
  submitCode(request: object, by?: Person): Promise<string>;
  approveCode(params: object, by?: Person): Promise<string>;
  rejectCode(people: readonly Person[], by?: Person): Promise<string>;
  listCode(by: Person, params?: JsonObject): Promise<string>;
  /** A page that was verified. */
  listPage(by: Person, params?: JsonObject): Promise<GroupRecoveryList>;
  /** Accounts whose requests somebody sees. */
  listed(by: Person): Promise<string[]>;
  /** Requests as they are stored. */
  stored(): Promise<unknown>;
  /** Parameters that give people the keys they asked for. */
  approvalOf(people: readonly Person[], by?: Person): GroupParams<'group.member.recovery.approve'>;
  /** That lists of requests changed, for these people. */
  hint(...people: Person[]): unknown;
  timeline(head: number, accessEnded?: number): unknown;
}

export async function openClub(): Promise<Club> {
  const world = await World.start({ groupRecoveryWait: wait });
  const ann = await Person.atHome(world, 'ann');
  const ben = await Person.atHome(world, 'ben');
  const cem = await Person.atHome(world, 'cem');
  const dora = await Person.atHome(world, 'dora', ['phone', 'laptop']);
  const emil = await Person.atHome(world, 'emil');
  const group = await TestGroup.found(world, ann);
  await group.admit(ben, cem, dora, emil);
  await group.setRole(ben, 'administrator');
  await group.setRole(cem, 'administrator');
  world.takeNotices();
  const { groupId } = group;
  const of = (person: Person) => ({ session: person.session() });
  const listPage = async (by: Person, params: JsonObject = {}): Promise<GroupRecoveryList> => {
    const request = { group_id: groupId, ...params };
    const answer = await world.call('group.member.recovery.list', request, of(by));
    verifyGroupRecoveryList(network, answer, request);
    return answer;
  };
  return {
    ...{ world, group, ann, ben, cem, dora, emil, listPage },
    submit: (request, by = dora) => world.call('group.member.recovery.submit', request, of(by)),
    submitCode: (request, by = dora) =>
      world.codeOf('group.member.recovery.submit', request, of(by)),
    approveCode: (params, by = ann) =>
      world.codeOf('group.member.recovery.approve', params, of(by)),
    rejectCode: (people, by = ann) => {
      const params = { group_id: groupId, accounts: people.map(({ account }) => account) };
      return world.codeOf('group.member.recovery.reject', params, of(by));
    },
    listCode: (by, params = {}) =>
      world.codeOf('group.member.recovery.list', { group_id: groupId, ...params }, of(by)),
    listed: async (by) => (await listPage(by)).requests.map(({ request }) => request.account),
    stored: async () => (await world.dump()).group_recoveries,
    approvalOf: (people, by = ann) =>
      group.approval(people, { kind: 'group.member.recovery.approval', by }),
    hint: (...people) => ({
      kind: 'group-recoveries',
      group: groupId,
      accounts: expect.toSatisfy((accounts: string[]) => {
        expect([...accounts].sort()).toEqual(accountsOf(...people));
        return true;
      }),
    }),
    timeline: (head, accessEnded = 0) => ({
      kind: 'group-timeline',
      group: groupId,
      head,
      accessEnded,
    }),
  };
}

/** In the order of lists. */
export function accountsOf(...people: readonly Person[]): string[] {
  return people.map(({ account }) => account).sort();
}

/** A request to be signed anew. */
export function bareOf({ device_signature: _, ...bare }: GroupMemberRecoveryRequest) {
  return bare;
}
