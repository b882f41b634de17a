/** Makes a group with members for one check. */
import type { JsonObject } from '@posthouse/protocol/json';
import { testAccounts } from '../fixtures/test-accounts.ts';
import type { TestAccount, TestContext } from '../fixtures/test-context.ts';
import { TestGroup } from './test-group.ts';

export interface GroupFixtureOptions {
  /** Number of ordinary members, 0 by default. */
  readonly members?: number;
  /** Number of administrators, 0 by default. */
  readonly administrators?: number;
  /** Number of accounts that are not members, 0 by default. */
  readonly strangers?: number;
  /** Devices of each account, 1 by default. */
  readonly devices?: number;
  /** Members of `group.create` that replace the defaults. */
  readonly overrides?: JsonObject;
}

/** A group with its members by role, and accounts outside it. */
export interface GroupFixture {
  readonly context: TestContext;
  readonly group: TestGroup;
  readonly owner: TestAccount;
  readonly administrators: readonly TestAccount[];
  readonly members: readonly TestAccount[];
  readonly strangers: readonly TestAccount[];
}

/**
 * Creates a group and admits members and administrators.
 * @example
 * const { group, owner, members } = await groupFixture(context, { members: 1 });
 * const [ben] = members as [TestAccount];
 */
export async function groupFixture(
  context: TestContext,
  options: GroupFixtureOptions = {},
): Promise<GroupFixture> {
  const { administrators = 0, members = 0, strangers = 0, devices = 1, overrides } = options;
  const inside = administrators + members;
  const [owner, ...others] = (await testAccounts(context, 1 + inside + strangers, { devices })) as [
    TestAccount,
    ...TestAccount[],
  ];
  const group = await TestGroup.create(context, owner, overrides);
  if (inside > 0) await group.admit(...others.slice(0, inside));
  for (const account of others.slice(0, administrators)) {
    await group.setRole(account, 'administrator');
  }
  return {
    context,
    group,
    owner,
    administrators: others.slice(0, administrators),
    members: others.slice(administrators, inside),
    strangers: others.slice(inside),
  };
}
