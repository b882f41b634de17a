/** A group with people in it, for one check. */
import type { JsonObject } from '@posthouse/protocol/json';
import { testAccounts } from '../fixtures/test-accounts.ts';
import type { TestAccount, TestContext } from '../fixtures/test-context.ts';
import { TestGroup } from './test-group.ts';

export interface GroupFixtureOptions {
  /** Number of ordinary members, 0 by default. */
  readonly members?: number;
  /** Number of administrators, 0 by default. */
  readonly administrators?: number;
  /** Number of people outside, 0 by default. */
  readonly strangers?: number;
  /** Devices of each, 1 by default. */
  readonly devices?: number;
  /** What the creation says otherwise. */
  readonly facts?: JsonObject;
}

/** Who is in a group and who is not; take them by destructuring. */
export interface GroupFixture {
  readonly context: TestContext;
  readonly group: TestGroup;
  readonly owner: TestAccount;
  readonly administrators: readonly TestAccount[];
  readonly members: readonly TestAccount[];
  readonly strangers: readonly TestAccount[];
}

/**
 * Founds a group and admits people.
 * @example
 * const { group, owner, members } = await groupFixture(context, { members: 1 });
 * const [ben] = members as [Resident];
 */
export async function groupFixture(
  context: TestContext,
  options: GroupFixtureOptions = {},
): Promise<GroupFixture> {
  const { administrators = 0, members = 0, strangers = 0, devices = 1, facts } = options;
  const inside = administrators + members;
  const [owner, ...people] = (await testAccounts(context, 1 + inside + strangers, { devices })) as [
    TestAccount,
    ...TestAccount[],
  ];
  const group = await TestGroup.create(context, owner, facts);
  if (inside > 0) await group.admit(...people.slice(0, inside));
  for (const person of people.slice(0, administrators)) {
    await group.setRole(person, 'administrator');
  }
  return {
    context,
    group,
    owner,
    administrators: people.slice(0, administrators),
    members: people.slice(administrators, inside),
    strangers: people.slice(inside),
  };
}
