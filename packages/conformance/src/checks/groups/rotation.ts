/** The second phase of a rotation: the new client secret becomes current (05 §13.27). */

import { assertConforms, assertEqual } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import { publishDevices, withDevice } from '../../fixtures/test-accounts.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';
import { type GroupFixture, groupFixture } from '../../groups/group-fixture.ts';
import { readRecoveries } from '../../groups/group-lists.ts';
import { newSecret } from '../../groups/group-objects.ts';
import {
  assertChainMatches,
  assertUnchanged,
  kindsOf,
  openKeys,
  readChain,
  readEpochs,
  readKeyPage,
  rotatedByRelay,
} from '../../groups/group-reader.ts';
import { assertCommitRefused } from '../../groups/test-group.ts';

const commit = checksOf('group.secret.rotation.commit');
const method = 'group.secret.rotation.commit';

commit.check(
  'activates',
  { source: '05 §13.27, §7.2', title: 'makes the new secret current for all members at once' },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1 });
    const [ben] = members as [TestAccount];
    const { state: before } = await readChain(group, owner);
    await group.rotate([owner, ben]);
    for (const by of [owner, ben]) {
      const { state, history, outcomes } = await readChain(group, by);
      assertChainMatches(group, { state });
      assertEqual(kindsOf({ outcomes }).at(-1), 'group.secret.rotation', 'the last event');
      assertConforms(state.epoch > before.epoch, 'a greater epoch');
      const page = await readKeyPage(group, by);
      const results = openKeys(group, by, { page, history });
      assertEqual(results.at(-1)?.epoch, state.epoch, 'the epoch of the last keys');
      for (const { status } of results)
        assertEqual(status, 'verified', 'status of the old and new boxes');
    }
    await assertCommitRefused(group, group.secret);
  },
);

commit.check(
  'owner-key',
  { source: '05 §13.27', title: "replaces the owner's key in the same event" },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1 });
    const [ben] = members as [TestAccount];
    await group.requestRecovery(owner);
    await group.requestRecovery(ben);
    await group.rotate([owner, ben]);
    assertEqual((await readRecoveries(group, owner)).requests.length, 2, 'the number of requests');
    const key = group.keys.make();
    await group.rotate([owner, ben], key);
    const chain = await readChain(group, owner);
    const member = chain.state.members.get(owner.account.id);
    assertEqual(member?.member_encryption_public_key, key.publicKey, 'the new key');
    assertEqual((await readEpochs(group, owner)).length, 4, 'boxes of old and new keys open');
    const { requests } = await readRecoveries(group, owner);
    assertEqual(requests.length, 1, "the owner's request is deleted, the other stays");
    assertEqual(requests[0]?.request.account, ben.account.id, "the member's");
    await group.recover([ben]);
    await readEpochs(group, ben);
  },
);

commit.check(
  'same-owner-key',
  { source: '05 §4.10, §13.27', title: "refuses the owner's current key" },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    const secret = newSecret();
    await group.prepare(group.prepareParams(secret, [owner]));
    const params = group.rotationBody(secret, { ownerKey: group.keys.of(owner.account.id) });
    await context.expectError(owner.caller, { method, params }, 'bad_request');
    await group.commit(secret);
  },
);

commit.check(
  'nothing-staged',
  { source: '05 §13.27', title: 'answers state_conflict without a preparation of that commitment' },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    await assertUnchanged(group, owner, async () => {
      await assertCommitRefused(group, newSecret());
      await group.prepare(group.prepareParams(newSecret(), [owner]));
      await assertCommitRefused(group, newSecret());
    });
  },
);

commit.check(
  'coverage',
  { source: '05 §13.26, §13.27', title: 'needs a box for every member, also for new ones' },
  async (context) => {
    const { group, owner, members, strangers } = await groupFixture(context, {
      members: 1,
      strangers: 1,
    });
    const [eve] = strangers as [TestAccount];
    const secret = newSecret();
    await group.prepare(group.prepareParams(secret, [owner]));
    await assertCommitRefused(group, secret);
    await group.prepare(group.prepareParams(secret, members));
    await group.admit(eve);
    await assertUnchanged(group, owner, () => assertCommitRefused(group, secret));
    const { prepared: count } = await group.prepare(group.prepareParams(secret, [eve]));
    assertEqual(count, 3, 'the number of prepared boxes');
    await group.commit(secret);
    await readEpochs(group, eve);
  },
);

/** Calls that invalidate the first member's box while a rotation is prepared. */
const losses: Readonly<Record<string, (fixture: GroupFixture, ben: TestAccount) => Promise<void>>> =
  {
    leave: ({ group }, ben) => group.leave(ben),
    removal: ({ group }, ben) => group.remove([ben]),
    ban: ({ group }, ben) => group.ban([ben]),
    recovery: async ({ group }, ben) => {
      await group.requestRecovery(ben);
      await group.recover([ben]);
    },
  };

for (const [word, lose] of Object.entries(losses)) {
  commit.check(
    `after-${word}`,
    { source: '05 §13.26, §18', title: `continues after a ${word}, without that member's old box` },
    async (context) => {
      const fixture = await groupFixture(context, { members: 2 });
      const { group, owner, members } = fixture;
      const [ben, cem] = members as [TestAccount, TestAccount];
      const secret = newSecret();
      await group.prepare(group.prepareParams(secret, [owner, ben, cem]));
      await lose(fixture, ben);
      if (word === 'recovery') {
        await assertCommitRefused(group, secret);
        await group.prepare(group.prepareParams(secret, [ben]));
      } else {
        const { prepared: count } = await group.prepare(group.prepareParams(secret, [cem]));
        assertEqual(count, 2, 'the number of prepared boxes');
      }
      await group.commit(secret);
      await readEpochs(group, cem);
      if (word === 'recovery') await readEpochs(group, ben);
    },
  );
}

commit.check(
  'undisturbed',
  {
    source: '05 §13.27',
    title: 'continues after messages, roles, bans of nonmembers, relay secrets',
  },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1, devices: 2 });
    const [ben] = members as [TestAccount];
    const secret = newSecret();
    await readEpochs(group, withDevice(ben, 1));
    await group.prepare(group.prepareParams(secret, [owner, ben]));
    await publishDevices(context, ben, [ben.device]);
    await rotatedByRelay(group, owner);
    await group.update({ name: 'other' });
    await group.setRole(ben, 'administrator');
    const stranger = { account: context.account() } as TestAccount;
    await group.ban([stranger]);
    await group.unban([stranger]);
    await group.send(owner, (await readChain(group, owner)).state.epoch);
    await group.commit(secret);
    assertChainMatches(group, await readChain(group, ben));
  },
);

commit.check(
  'rejoin',
  { source: '05 §13.26', title: 'does not restore the old box of a member that left and returned' },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1 });
    const [ben] = members as [TestAccount];
    const secret = newSecret();
    await group.prepare(group.prepareParams(secret, [owner, ben]));
    await group.leave(ben);
    await group.admit(ben);
    await assertCommitRefused(group, secret);
    await group.prepare(group.prepareParams(secret, [ben]));
    await group.commit(secret);
    await readEpochs(group, ben);
  },
);

export const groupRotationChecks = commit.list;
