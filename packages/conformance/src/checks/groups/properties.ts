/** Properties, roles, ownership and the end of a group (05 §13.5 to §13.8). */

import type { JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import { relayLimit } from '../../fixtures/relay-info.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';
import { groupFixture } from '../../groups/group-fixture.ts';
import { newSecret } from '../../groups/group-objects.ts';
import {
  assertChainMatches,
  eventOf,
  kindsOf,
  readChain,
  resolveGroup,
} from '../../groups/group-reader.ts';
import { assertCommitRefused } from '../../groups/test-group.ts';

const update = checksOf('group.update');
const role = checksOf('group.role.update');
const transfer = checksOf('group.owner.transfer');
const close = checksOf('group.close');

for (const overrides of [
  { name: 'é'.repeat(128) },
  { description: 'x'.repeat(4_096) },
  { description: '' },
  { member_capacity: 1 },
  { invite_policy: 'members_shareable' },
]) {
  const [name] = Object.keys(overrides) as [string];
  const size = String(Object.values(overrides)[0]).length;
  update.check(
    `changes-${name}-${size}`,
    { source: '05 §13.6', title: `replaces ${name} and nothing else` },
    async (context) => {
      const { group, owner } = await groupFixture(context, {
        members: 1,
        overrides: { description: 'old' },
      });
      const before = await resolveGroup(group, owner);
      const { state: old } = await readChain(group, owner);
      await group.update(overrides);
      const expected = { ...before, ...overrides };
      const after = await resolveGroup(group, owner);
      assertEqual(after, expected, 'the state of group.resolve');
      const chain = await readChain(group, owner);
      assertChainMatches(group, chain);
      assertEqual(chain.state.epoch, old.epoch, 'the epoch is unchanged');
      assertEqual(chain.state.members.size, 2, 'the number of members');
    },
  );
}

update.check(
  'same-value',
  { source: '05 §5.2', title: 'appends an update that changes nothing, and moves the head' },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    await group.update({ name: group.create.name });
    await group.update({ name: group.create.name });
    const chain = await readChain(group, owner);
    assertChainMatches(group, chain);
    assertEqual(chain.outcomes.length, 3, 'two more events');
  },
);

update.check(
  'unknown-member',
  { source: '05 §13.6', title: 'unknown members stay in the event and do not reach the state' },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    await group.update({ name: 'other', owner: 'me', colour: 'red', status: 'closed' });
    const { outcomes } = await readChain(group, owner);
    const { payload } = eventOf(outcomes[1] as (typeof outcomes)[0]);
    assertEqual((payload as JsonObject).colour, 'red', 'the member in the signed event');
    const state = (await resolveGroup(group, owner)) as JsonObject;
    assertConforms(
      state.owner === owner.account.id && state.status === 'active',
      'no other effect',
    );
    assertEqual(state.colour, undefined, 'the member in the state');
  },
);

const wrongUpdates: Readonly<Record<string, JsonObject>> = {
  'no modifiable member': {},
  'an unknown member alone': { colour: 'red' },
  'an empty name': { name: '' },
  'a name of whitespace': { name: ' \u00a0' },
  'a name of 257 bytes': { name: 'x'.repeat(257) },
  'a description of whitespace': { description: '\t' },
  'a description of 4,097 bytes': { description: 'x'.repeat(4_097) },
  'no capacity': { member_capacity: 0 },
  'an unknown policy': { invite_policy: 'owner' },
  'one good and one wrong member': { name: 'good', member_capacity: 0 },
};

update.check(
  'refused-facts',
  { source: '05 §4.1, §13.6', title: 'refuses invalid values and an update without changes' },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    const cap = await relayLimit(context, 'max_group_members');
    const wrong = { ...wrongUpdates, 'a capacity over the cap': { member_capacity: cap + 1 } };
    const calls = Object.entries(wrong).map(([what, overrides]) => {
      return [what, group.chainBody('group.update', { ...overrides })] as const;
    });
    await assertAllRefused({ by: owner, method: 'group.update', codes: ['bad_request'] }, calls);
    assertEqual((await resolveGroup(group, owner)).name, 'club', 'the name is unchanged');
    await group.update({ member_capacity: cap });
  },
);

update.check(
  'many-at-once',
  { source: '05 §5.2, §21.1', title: 'one of many concurrent updates is appended, whole' },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    const names = ['a', 'b', 'c', 'd', 'e'];
    const answers = await Promise.all(
      names.map((name) =>
        owner.caller.call('group.update', group.chainBody('group.update', { name })),
      ),
    );
    const winners = names.filter((_, index) => answers[index]?.ok);
    assertEqual(winners.length, 1, 'exactly one succeeds');
    const { state, outcomes } = await readChain(group, owner);
    assertConforms(
      outcomes.length === 2 && state.name === winners[0],
      'one event, with the name of the successful call',
    );
  },
);

role.check(
  'sets',
  { source: '05 §13.7, §6', title: 'grants and revokes the rights of an administrator' },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1 });
    const [ben] = members as [TestAccount];
    const call = { method: 'group.application.list', params: { group_id: group.groupId } };
    await context.expectError(ben.caller, call, 'forbidden');
    await group.setRole(ben, 'administrator');
    await group.setRole(ben, 'administrator');
    await context.expectOk(ben.caller, call.method, call.params);
    const { state } = await readChain(group, ben);
    assertEqual(state.members.get(ben.account.id)?.role, 'administrator', 'the role in the chain');
    await group.setRole(ben, 'member');
    await context.expectError(ben.caller, call, 'forbidden');
    const chain = await readChain(group, owner);
    assertChainMatches(group, chain);
    assertEqual(chain.state.epoch, state.epoch, 'the epoch is unchanged');
  },
);

role.check(
  'targets',
  { source: '05 §13.7', title: 'answers state_conflict for the owner and for nonmembers' },
  async (context) => {
    const { group, owner, members, strangers } = await groupFixture(context, {
      members: 2,
      strangers: 1,
    });
    const [left, banned, stranger] = [...members, ...strangers] as [
      TestAccount,
      TestAccount,
      TestAccount,
    ];
    await group.leave(left);
    await group.ban([banned]);
    const calls = Object.entries({ owner, stranger, banned, left }).map(([what, { account }]) => {
      const overrides = { account: account.id, role: 'administrator' };
      return [what, group.chainBody('group.role.update', overrides)] as const;
    });
    await assertAllRefused(
      { by: owner, method: 'group.role.update', codes: ['state_conflict'] },
      calls,
    );
    await readChain(group, owner);
  },
);

role.check(
  'refused-role',
  { source: '05 §4.4, §13.7', title: 'refuses other roles, also owner' },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1 });
    const [ben] = members as [TestAccount];
    const calls = ['owner', 'Administrator', 'guest', ''].map((other) => {
      const overrides = { account: ben.account.id, role: other };
      return [`role '${other}'`, group.chainBody('group.role.update', overrides)] as const;
    });
    await assertAllRefused(
      { by: owner, method: 'group.role.update', codes: ['bad_request'] },
      calls,
    );
  },
);

transfer.check(
  'hands-over',
  { source: '05 §13.8', title: 'makes the target the owner and the former owner a member' },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1 });
    const [ben] = members as [TestAccount];
    const { state: before } = await readChain(group, owner);
    await group.transfer(ben);
    const state = await resolveGroup(group, owner);
    assertConforms(
      state.owner === ben.account.id && state.member_count === 2,
      'the status in the state',
    );
    const chain = await readChain(group, owner);
    assertChainMatches(group, chain);
    assertEqual(chain.state.members.get(owner.account.id)?.role, 'member', 'an ordinary member');
    assertEqual(chain.state.epoch, before.epoch, 'the epoch is unchanged');
    const byFormer = group.chainBody('group.update', { name: 'mine' }, owner);
    const call = { method: 'group.update', params: byFormer };
    await context.expectError(owner.caller, call, 'forbidden');
    await group.update({ name: 'mine' });
    // The former owner may leave now; the owner may not.
    await group.leave(owner);
  },
);

transfer.check(
  'targets',
  { source: '05 §13.8', title: 'answers forbidden for the owner, nonmembers and banned accounts' },
  async (context) => {
    const { group, owner, members, strangers } = await groupFixture(context, {
      members: 1,
      strangers: 1,
    });
    const [banned, stranger] = [...members, ...strangers] as [TestAccount, TestAccount];
    await group.ban([banned]);
    const calls = Object.entries({ owner, stranger, 'a banned account': banned }).map(
      ([what, { account }]) => {
        const overrides = { new_owner_account: account.id };
        return [what, group.chainBody('group.owner.transfer', overrides)] as const;
      },
    );
    await assertAllRefused(
      { by: owner, method: 'group.owner.transfer', codes: ['forbidden'] },
      calls,
    );
    await readChain(group, owner);
  },
);

transfer.check(
  'priority',
  { source: '05 §13.8', title: 'checks the role before the head' },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1 });
    const [ben] = members as [TestAccount];
    const overrides = { new_owner_account: ben.account.id };
    const byMember = group.chainBody(
      'group.owner.transfer',
      { new_owner_account: owner.account.id },
      ben,
    );
    const byOwner = group.chainBody('group.owner.transfer', overrides);
    await group.update({ name: 'later' });
    const method = 'group.owner.transfer';
    await context.expectError(ben.caller, { method, params: byMember }, 'forbidden');
    await context.expectError(owner.caller, { method, params: byOwner }, 'state_conflict');
  },
);

transfer.check(
  'round-trip',
  { source: '05 §5.2', title: 'an old event stays refused if its signer owns the group again' },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1 });
    const [ben] = members as [TestAccount];
    const params = group.chainBody('group.update', { name: 'late' });
    await group.transfer(ben);
    await group.transfer(owner);
    await context.expectError(owner.caller, { method: 'group.update', params }, 'state_conflict');
    assertEqual((await resolveGroup(group, owner)).name, 'club', 'the name is unchanged');
  },
);

transfer.check(
  'ends-preparation',
  { source: '05 §13.8, §18', title: 'deletes the preparation of the former owner' },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1 });
    const [ben] = members as [TestAccount];
    const secret = newSecret();
    await group.prepare(group.prepareParams(secret, [owner, ben]));
    await group.transfer(ben);
    await group.transfer(owner);
    await assertCommitRefused(group, secret);
  },
);

close.check(
  'ends',
  { source: '05 §13.5, §11.4', title: 'is the last event, in the same epoch' },
  async (context) => {
    const { group, owner } = await groupFixture(context, { members: 1 });
    const { state: before } = await readChain(group, owner);
    await group.close();
    // Reading a closed group is not guaranteed; if it is served, it must be correct.
    const params = { group_id: group.groupId };
    if (!(await owner.caller.call('group.sync', params)).ok) return;
    const chain = await readChain(group, owner);
    assertChainMatches(group, chain);
    assertEqual(kindsOf(chain).at(-1), 'group.close', 'closing is the last event');
    assertEqual(chain.state.epoch, before.epoch, 'the epoch is unchanged');
    assertEqual((await resolveGroup(group, owner)).status, 'closed', 'the status in the state');
  },
);

close.check(
  'repeat',
  {
    source: '05 §13.5',
    title: 'answers a repeat with state_conflict, on the old head and the new',
  },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    const body = group.chainBody('group.close');
    await group.write('group.close', body);
    const again = [
      ['the same body', body],
      ['a body on the last head', group.chainBody('group.close')],
    ] as const;
    await assertAllRefused({ by: owner, method: 'group.close', codes: ['state_conflict'] }, again);
  },
);

export const groupPropertyChecks = [...close.list, ...update.list, ...role.list, ...transfer.list];
