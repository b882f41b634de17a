/** Reads and verifies the three lists of a group as a client does (05 §12.7). */
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

/** The cursor and limit of a page. */
export interface ListRequest {
  readonly cursor?: string;
  readonly limit?: number;
}

/** A page of any list: one key for each record, and the cursor of the next page. */
export interface ListPage {
  readonly keys: readonly string[];
  readonly next: string | undefined;
}

/** Reads a page of each list, by method. */
export const groupLists = {
  'group.invite.list': async (
    group: GroupObjects,
    by: TestAccount,
    overrides: ListRequest = {},
  ) => {
    const { invites, next } = await readInvites(group, by, overrides);
    return { keys: invites.map(({ invite }) => invite.invite_id), next };
  },
  'group.application.list': async (
    group: GroupObjects,
    by: TestAccount,
    overrides: ListRequest = {},
  ) => {
    const { applications, next } = await readApplications(group, by, overrides);
    return { keys: applications.map(({ application }) => application.account), next };
  },
  'group.member.recovery.list': async (
    group: GroupObjects,
    by: TestAccount,
    overrides: ListRequest = {},
  ) => {
    const { requests, next } = await readRecoveries(group, by, overrides);
    return { keys: requests.map(({ request }) => request.account), next };
  },
} as const satisfies Readonly<
  Record<
    string,
    (group: GroupObjects, by: TestAccount, overrides?: ListRequest) => Promise<ListPage>
  >
>;
export type GroupListName = keyof typeof groupLists;

/** Reads all pages of a list and returns the keys of its records in order. */
export async function readList(
  method: GroupListName,
  group: GroupObjects,
  by: TestAccount,
  limit?: number,
): Promise<string[]> {
  const keys: string[] = [];
  let cursor: string | undefined;
  do {
    const overrides = {
      ...(limit !== undefined && { limit }),
      ...(cursor !== undefined && { cursor }),
    };
    const page = await groupLists[method](group, by, overrides);
    keys.push(...page.keys);
    cursor = page.next;
  } while (cursor !== undefined);
  return keys;
}

/** Reads and verifies a page of `group.invite.list`. */
export async function readInvites(
  group: GroupObjects,
  by: TestAccount,
  overrides: ListRequest = {},
): Promise<GroupInviteList> {
  const { page, params } = await read('group.invite.list', group, by, overrides);
  verifyGroupInviteList(group.context.network, page, params);
  return page;
}

/** Reads and verifies a page of `group.application.list`. */
export async function readApplications(
  group: GroupObjects,
  by: TestAccount,
  overrides: ListRequest = {},
): Promise<GroupApplicationList> {
  const { page, params } = await read('group.application.list', group, by, overrides);
  verifyGroupApplicationList(group.context.network, page, params);
  return page;
}

/** Reads and verifies a page of `group.member.recovery.list`. */
export async function readRecoveries(
  group: GroupObjects,
  by: TestAccount,
  overrides: ListRequest = {},
): Promise<GroupRecoveryList> {
  const { page, params } = await read('group.member.recovery.list', group, by, overrides);
  verifyGroupRecoveryList(group.context.network, page, params);
  return page;
}

async function read(
  method: GroupListName,
  group: GroupObjects,
  by: TestAccount,
  overrides: ListRequest,
): Promise<{
  readonly page: unknown;
  readonly params: JsonObject & { readonly group_id: string };
}> {
  const params = { group_id: group.groupId, ...overrides };
  return { page: await group.context.expectOk(by.caller, method, params), params };
}
