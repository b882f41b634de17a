/** The three lists of a group as a client reads and verifies them (05 §12.7). */
import {
  type GroupApplicationList,
  type GroupInviteList,
  type GroupRecoveryList,
  verifyGroupApplicationList,
  verifyGroupInviteList,
  verifyGroupRecoveryList,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import type { TestAccount } from '../fixtures/test-context.ts';
import type { GroupObjects } from './group-objects.ts';

/** What a page is asked for. */
export interface ListRequest {
  readonly cursor?: string;
  readonly limit?: number;
}

/** A page, whatever it lists: a text for each record, and where the next one begins. */
export interface ListPage {
  readonly keys: readonly string[];
  readonly next: string | undefined;
}

/** The lists by their methods. */
export const groupLists = {
  'group.invite.list': async (group: GroupObjects, by: TestAccount, facts: ListRequest = {}) => {
    const { invites, next } = await readInvites(group, by, facts);
    return { keys: invites.map(({ invite }) => invite.invite_id), next };
  },
  'group.application.list': async (
    group: GroupObjects,
    by: TestAccount,
    facts: ListRequest = {},
  ) => {
    const { applications, next } = await readApplications(group, by, facts);
    return { keys: applications.map(({ application }) => application.account), next };
  },
  'group.member.recovery.list': async (
    group: GroupObjects,
    by: TestAccount,
    facts: ListRequest = {},
  ) => {
    const { requests, next } = await readRecoveries(group, by, facts);
    return { keys: requests.map(({ request }) => request.account), next };
  },
} as const satisfies Readonly<
  Record<string, (group: GroupObjects, by: TestAccount, facts?: ListRequest) => Promise<ListPage>>
>;
export type GroupListName = keyof typeof groupLists;

/** All records of a list from its first page to its last, in the order they came. */
export async function readList(
  method: GroupListName,
  group: GroupObjects,
  by: TestAccount,
  limit?: number,
): Promise<string[]> {
  const keys: string[] = [];
  let cursor: string | undefined;
  do {
    const facts = {
      ...(limit !== undefined && { limit }),
      ...(cursor !== undefined && { cursor }),
    };
    const page = await groupLists[method](group, by, facts);
    keys.push(...page.keys);
    cursor = page.next;
  } while (cursor !== undefined);
  return keys;
}

export async function readInvites(
  group: GroupObjects,
  by: TestAccount,
  facts: ListRequest = {},
): Promise<GroupInviteList> {
  const { page, params } = await read('group.invite.list', group, by, facts);
  verifyGroupInviteList(group.context.network, page, params);
  return page;
}

export async function readApplications(
  group: GroupObjects,
  by: TestAccount,
  facts: ListRequest = {},
): Promise<GroupApplicationList> {
  const { page, params } = await read('group.application.list', group, by, facts);
  verifyGroupApplicationList(group.context.network, page, params);
  return page;
}

export async function readRecoveries(
  group: GroupObjects,
  by: TestAccount,
  facts: ListRequest = {},
): Promise<GroupRecoveryList> {
  const { page, params } = await read('group.member.recovery.list', group, by, facts);
  verifyGroupRecoveryList(group.context.network, page, params);
  return page;
}

async function read(
  method: GroupListName,
  group: GroupObjects,
  by: TestAccount,
  facts: ListRequest,
): Promise<{
  readonly page: unknown;
  readonly params: JsonObject & { readonly group_id: string };
}> {
  const params = { group_id: group.groupId, ...facts };
  return { page: await group.context.expectOk(by.caller, method, params), params };
}
