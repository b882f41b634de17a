/** The first phase of a rotation: boxes of a new client secret (05 §13.26). */
import type { JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';
import { groupFixture } from '../../groups/group-fixture.ts';
import { newSecret } from '../../groups/group-objects.ts';
import { assertUnchanged, readChain, readEpochs, readKeyPage } from '../../groups/group-reader.ts';
import { assertCommitRefused } from '../../groups/test-group.ts';

const prepare = checksOf('group.secret.rotation.prepare');
const method = 'group.secret.rotation.prepare';

prepare.check(
  'stages',
  { source: '05 §13.26', title: 'counts accounts with a box and changes nothing else' },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 2 });
    const [ben, cem] = members as [TestAccount, TestAccount];
    const secret = newSecret();
    await assertUnchanged(group, owner, async () => {
      const first = await group.prepare(group.prepareParams(secret, [owner, ben]));
      assertEqual(first.prepared, 2, 'two boxes');
      const again = await group.prepare(group.prepareParams(secret, [ben]));
      assertEqual(again.prepared, 2, 'a replaced box counts once');
      const all = await group.prepare(group.prepareParams(secret, [cem]));
      assertEqual(all.prepared, 3, 'three boxes');
      assertEqual(again.expires_at, first.expires_at, 'expires_at of the first batch');
      assertEqual(all.expires_at, first.expires_at, 'expires_at of the first batch');
    });
    const { state } = await readChain(group, owner);
    assertEqual(
      state.client_secret_commitment,
      group.commitment,
      'the old commitment stays the current one',
    );
  },
);

prepare.check(
  'replaces',
  { source: '05 §13.26', title: 'another commitment starts a new preparation without boxes' },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1 });
    const [former, later] = [newSecret(), newSecret()];
    await group.prepare(group.prepareParams(former, [owner, ...members]));
    const begun = await group.prepare(group.prepareParams(later, [owner]));
    assertEqual(begun.prepared, 1, 'one box');
    await assertCommitRefused(group, former);
    await assertCommitRefused(group, later);
    await group.prepare(group.prepareParams(later, members));
    await group.commit(later);
    await readEpochs(group, owner);
  },
);

prepare.check(
  'later-box',
  { source: '05 §13.26', title: "a later box replaces the account's previous one" },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1 });
    const [ben] = members as [TestAccount];
    const secret = newSecret();
    const whole = group.prepareParams(secret, [owner, ben]);
    const { client_secret_boxes: ofAnother } = group.prepareParams(newSecret(), [ben]);
    await group.prepare(whole);
    await group.prepare({ ...whole, client_secret_boxes: ofAnother ?? null });
    const again = group.prepareParams(secret, [ben]);
    await group.prepare(again);
    await group.commit(secret);
    await readEpochs(group, ben);
    const { keys } = await readKeyPage(group, ben);
    const [box] = Object.values(again.client_secret_boxes as JsonObject);
    const served = keys.at(-1)?.client_secret_box;
    assertConforms(served !== undefined, 'a box of the new secret');
    assertEqual(served, box ?? null, 'the last box');
  },
);

prepare.check(
  'accounts',
  { source: '05 §13.26', title: 'refuses a batch with a box for a nonmember and stores none' },
  async (context) => {
    const { group, owner, members, strangers } = await groupFixture(context, {
      members: 1,
      strangers: 1,
    });
    const [ben, eve] = [...members, ...strangers] as [TestAccount, TestAccount];
    const secret = newSecret();
    await group.prepare(group.prepareParams(secret, [owner, ben]));
    group.keys.activate(eve.account.id, group.keys.make());
    const params = group.prepareParams(secret, [eve]);
    const boxes = { client_secret_boxes: {} };
    const calls = [
      ['a nonmember', params],
      ['a member and a nonmember', group.prepareParams(secret, [owner, eve])],
      ['a nonmember', { ...params, ...boxes }],
      ['a nonmember and another secret', group.prepareParams(newSecret(), [owner, eve])],
    ] as const;
    await assertAllRefused({ by: owner, method: method, codes: ['bad_request'] }, calls);
    await group.commit(secret);
  },
);

prepare.check(
  'commitments',
  { source: '05 §13.26', title: 'refuses another base, and the current commitment as the new one' },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    const secret = newSecret();
    const base_commitment = group.commitmentTo(newSecret());
    const outdated = group.prepareParams(secret, [owner], { overrides: { base_commitment } });
    await context.expectError(owner.caller, { method: method, params: outdated }, 'state_conflict');
    const same = { client_secret_commitment: group.commitment };
    const unchanged = group.prepareParams(secret, [owner], { overrides: same });
    await context.expectError(owner.caller, { method: method, params: unchanged }, 'bad_request');
    const old = { base_commitment: group.commitment };
    await group.rotate([owner]);
    const late = group.prepareParams(newSecret(), [owner], { overrides: old });
    await context.expectError(owner.caller, { method: method, params: late }, 'state_conflict');
  },
);

export const groupStagingChecks = prepare.list;
