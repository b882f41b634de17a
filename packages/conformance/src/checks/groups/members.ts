/** The end of memberships: leaving, removal, bans (05 §9, §13.17 to §13.20). */
import type { JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';
import { type GroupFixture, groupFixture } from '../../groups/group-fixture.ts';
import { readRecoveries } from '../../groups/group-lists.ts';
import { idsOf } from '../../groups/group-objects.ts';
import {
  assertChainMatches,
  assertUnchanged,
  eventOf,
  kindsOf,
  messagesOf,
  readChain,
  readEpochs,
  resolveGroup,
} from '../../groups/group-reader.ts';

const leave = checksOf('group.member.leave');
const remove = checksOf('group.member.remove');
const ban = checksOf('group.member.ban');
const unban = checksOf('group.member.unban');

/** The ways to end a membership: method, kind of event, and the call. */
const ways = [
  [
    leave,
    'group.member.leave',
    ({ group }: GroupFixture, [ben]: [TestAccount]) => group.leave(ben),
  ],
  [
    remove,
    'group.member.removal',
    ({ group }: GroupFixture, targets: [TestAccount]) => group.remove(targets),
  ],
  [
    ban,
    'group.member.ban',
    ({ group }: GroupFixture, targets: [TestAccount]) => group.ban(targets),
  ],
] as const;

for (const [{ check }, kind, act] of ways) {
  check(
    'ends-membership',
    { source: '05 §9.1, §9.2, §7.2', title: 'ends a membership in one event and a new epoch' },
    async (context) => {
      const fixture = await groupFixture(context, { members: 2 });
      const { group, owner, members } = fixture;
      const [ben, cem] = members as [TestAccount, TestAccount];
      const { state: before } = await readChain(group, owner);
      await act(fixture, [ben]);
      const chain = await readChain(group, cem);
      assertChainMatches(group, chain);
      assertEqual(kindsOf(chain).at(-1), kind, 'the event');
      assertConforms(chain.state.sequence > before.sequence, 'appended');
      assertEqual(chain.outcomes.length, 3, 'the number of events');
      assertConforms(chain.state.epoch > before.epoch, 'a greater epoch');
      assertConforms(!chain.state.members.has(ben.account.id), 'no longer a member');
      assertEqual(chain.state.bans.has(ben.account.id), kind.endsWith('ban'), 'banned by a ban');
      assertEqual((await resolveGroup(group, cem)).member_count, 2, 'member_count');
      assertEqual(
        (await readEpochs(group, cem)).at(-1),
        chain.state.epoch,
        'new keys for the other members',
      );
    },
  );

  check(
    'closes-access',
    { source: '05 §9.1, §10.3', title: 'refuses all calls of the former member' },
    async (context) => {
      const fixture = await groupFixture(context, { members: 1, devices: 2 });
      const { group, members } = fixture;
      const [ben] = members as [TestAccount];
      await act(fixture, [ben]);
      const group_id = group.groupId;
      for (const caller of ben.callers) {
        for (const method of ['group.sync', 'group.key.sync', 'group.resolve']) {
          await context.expectError(caller, { method, params: { group_id } }, 'forbidden');
        }
      }
      const params = group.message(ben, 2);
      await context.expectError(ben.caller, { method: 'group.message.send', params }, 'forbidden');
    },
  );

  check(
    'rejoins-anew',
    {
      source: '05 §10.3, §9.2',
      title: 'gives no earlier access to an account that is admitted again',
    },
    async (context) => {
      const fixture = await groupFixture(context, { members: 1 });
      const { group, owner, members } = fixture;
      const [ben] = members as [TestAccount];
      const { epoch } = (await readChain(group, ben)).state;
      await group.send(owner, epoch);
      await group.setRole(ben, 'administrator');
      await act(fixture, [ben]);
      if (kind === 'group.member.ban') await group.unban([ben]);
      await group.admit(ben);
      const chain = await readChain(group, ben);
      assertEqual(chain.state.members.get(ben.account.id)?.role, 'member', 'an ordinary member');
      assertEqual(messagesOf(chain).length, 0, 'the number of messages from before');
      assertEqual(
        (await readEpochs(group, ben)).join(),
        String(chain.state.epoch),
        'no keys from before',
      );
    },
  );

  check(
    'ends-recovery',
    { source: '05 §9.3', title: 'deletes the recovery request of the member' },
    async (context) => {
      const fixture = await groupFixture(context, { members: 1 });
      const { group, owner, members } = fixture;
      const [ben] = members as [TestAccount];
      await group.requestRecovery(ben);
      await act(fixture, [ben]);
      assertEqual(
        (await readRecoveries(group, owner)).requests.length,
        0,
        'the number of requests',
      );
      if (kind === 'group.member.ban') await group.unban([ben]);
      await group.admit(ben);
      assertEqual(
        (await readRecoveries(group, owner)).requests.length,
        0,
        'the number of requests after another admission',
      );
    },
  );
}

leave.check(
  'owner',
  { source: '05 §6, §13.17', title: 'answers forbidden to the owner' },
  async (context) => {
    const { group, owner } = await groupFixture(context, { members: 1 });
    const params = group.chainBody('group.member.leave', { account: owner.account.id });
    await context.expectError(owner.caller, { method: 'group.member.leave', params }, 'forbidden');
  },
);

leave.check(
  'another',
  { source: '05 §13.17', title: 'answers forbidden in the name of another member' },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 2 });
    const [ben, cem] = members as [TestAccount, TestAccount];
    const params = group.chainBody('group.member.leave', { account: cem.account.id }, ben);
    await assertUnchanged(group, owner, () =>
      context.expectError(ben.caller, { method: 'group.member.leave', params }, 'forbidden'),
    );
  },
);

leave.check(
  'repeat',
  { source: '05 §13.17', title: 'answers a repeat with forbidden' },
  async (context) => {
    const { group, members } = await groupFixture(context, { members: 1 });
    const [ben] = members as [TestAccount];
    const params = group.chainBody('group.member.leave', { account: ben.account.id }, ben);
    await group.write('group.member.leave', params, { by: ben });
    await context.expectError(ben.caller, { method: 'group.member.leave', params }, 'forbidden');
  },
);

/** Checks the accounts that must not be the target of removals and bans (05 §6). */
for (const [{ check }, method, kind] of [
  [remove, 'group.member.remove', 'group.member.removal'],
  [ban, 'group.member.ban', 'group.member.ban'],
] as const) {
  check(
    'targets',
    {
      source: '05 §6',
      title: 'answers forbidden for the owner, and for administrators if the caller is one',
    },
    async (context) => {
      const { group, owner, members, administrators } = await groupFixture(context, {
        members: 1,
        administrators: 2,
      });
      const [ben, ada, amy] = [...members, ...administrators] as [
        TestAccount,
        TestAccount,
        TestAccount,
      ];
      const calls = (by: TestAccount, ...batches: TestAccount[][]) =>
        batches.map((batch, index) => {
          const params = group.chainBody(kind, { accounts: idsOf(batch) }, by);
          return [`batch ${index}`, params] as const;
        });
      const codes = ['forbidden'] as const;
      await assertUnchanged(group, owner, async () => {
        await assertAllRefused({ by: owner, method, codes }, calls(owner, [owner], [ben, owner]));
        const byAda = calls(ada, [owner], [amy], [ada], [ben, amy]);
        await assertAllRefused({ by: ada, method, codes }, byAda);
      });
      const body = group.chainBody(kind, { accounts: idsOf([amy, ben]) });
      await group.write(method, body);
      assertEqual((await readChain(group, owner)).state.members.size, 2, 'the number of members');
    },
  );

  check(
    'batch',
    { source: '05 §7.2', title: 'ends several memberships in one event and one epoch' },
    async (context) => {
      const { group, owner, members } = await groupFixture(context, { members: 3 });
      const { state: before } = await readChain(group, owner);
      const overrides = { accounts: idsOf(members), note: 'spring cleaning' };
      const body = group.chainBody(kind, overrides);
      await group.write(method, body);
      const { state, outcomes } = await readChain(group, owner);
      assertEqual(state.members.size, 1, 'the number of members');
      assertConforms(outcomes.length === 3 && state.epoch > before.epoch, 'one event');
      const event = eventOf(outcomes.at(-1) as (typeof outcomes)[0]);
      assertEqual(event.payload, body, 'unchanged');
    },
  );
}

remove.check(
  'nonmember',
  {
    source: '05 §13.18',
    title: 'answers state_conflict and removes none if one target is no member',
  },
  async (context) => {
    const { group, owner, members, strangers } = await groupFixture(context, {
      members: 1,
      strangers: 1,
    });
    const accounts = idsOf([...members, ...strangers]);
    const params = group.chainBody('group.member.removal', { accounts });
    await assertUnchanged(group, owner, () =>
      context.expectError(
        owner.caller,
        { method: 'group.member.remove', params },
        'state_conflict',
      ),
    );
    await group.remove(members);
    const again = group.chainBody('group.member.removal', { accounts: idsOf(members) });
    const call = { method: 'group.member.remove', params: again };
    await context.expectError(owner.caller, call, 'state_conflict');
  },
);

const batches = [
  [remove, 'group.member.remove', 'group.member.removal'],
  [ban, 'group.member.ban', 'group.member.ban'],
  [unban, 'group.member.unban', 'group.member.unban'],
] as const;

for (const [{ check }, method, kind] of batches) {
  check(
    'batch-form',
    { source: '05 §4.4', title: 'refuses an empty batch and a repeated account' },
    async (context) => {
      const { group, owner, members } = await groupFixture(context, { members: 1 });
      const [id] = idsOf(members) as [string];
      const foreign = id.replace(/^neo:\d+/, 'neo:1');
      const calls: [string, JsonObject][] = Object.entries({
        'no account': [],
        'an account twice': [id, id],
        'an account of another network': [foreign],
      }).map(([what, accounts]) => [what, group.chainBody(kind, { accounts })]);
      await assertAllRefused({ by: owner, method, codes: ['bad_request'] }, calls);
    },
  );
}

export const groupMemberChecks = [...leave.list, ...remove.list, ...ban.list, ...unban.list];
