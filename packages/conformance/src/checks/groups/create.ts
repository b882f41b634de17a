import { createGroupNonce, deriveGroupId } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import { assertConforms, assertEqual } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import { unixSeconds } from '../../fixtures/account.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import { relayLimit } from '../../fixtures/relay-info.ts';
import { testAccounts } from '../../fixtures/test-accounts.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';
import { groupFixture } from '../../groups/group-fixture.ts';
import {
  eventOf,
  openKeys,
  readChain,
  readKeyPage,
  resolveGroup,
} from '../../groups/group-reader.ts';
import { TestGroup } from '../../groups/test-group.ts';

const create = checksOf('group.create');
const method = 'group.create';

create.check(
  'founds',
  { source: '05 §13.2', title: 'starts a chain at 0, in epoch 0, with its creator as owner' },
  async (context) => {
    const owner = await context.testAccount();
    const group = await TestGroup.create(context, owner, { name: ' the club ' });
    const { state, outcomes } = await readChain(group, owner);
    assertEqual(outcomes.length, 1, 'one event');
    const event = eventOf(outcomes[0] as (typeof outcomes)[0]);
    assertConforms(event.sequence === 0 && event.epoch === 0, 'sequence 0 and epoch 0');
    assertEqual(event.payload, group.create, 'the event is the creation as sent');
    assertEqual(event.signer_device_id, owner.device.id, 'signed by the calling device');
    assertConforms(Math.abs(event.accepted_at - unixSeconds()) <= 300, 'accepted now');
    assertEqual(state.members.get(owner.account.id)?.role, 'owner', 'the creator is the owner');
    assertEqual(state.head, group.head, 'the head of the chain is its digest');
  },
);

create.check(
  'state',
  { source: '05 §4.1, §13.2', title: 'group.resolve returns the state as created' },
  async (context) => {
    const owner = await context.testAccount();
    const overrides = {
      name: 'é'.repeat(128),
      member_capacity: 3,
      invite_policy: 'members_targeted',
    };
    const group = await TestGroup.create(context, owner, overrides);
    const {
      group_id,
      status,
      owner: of,
      member_count,
      description,
      ...rest
    } = await resolveGroup(group, owner);
    assertConforms(
      group_id === group.groupId && status === 'active',
      'status active and the group ID',
    );
    assertConforms(of === owner.account.id && member_count === 1, 'the owner is the only member');
    assertEqual(description, '', 'an omitted description is empty');
    assertEqual(rest, overrides, 'name, capacity and policy');
  },
);

create.check(
  'keys',
  { source: '05 §13.2, §10.2', title: 'gives the creator the keys of epoch 0' },
  async (context) => {
    const owner = await context.testAccount();
    const group = await TestGroup.create(context, owner);
    const { history } = await readChain(group, owner);
    const page = await readKeyPage(group, owner);
    const [key, ...more] = openKeys(group, owner, { page, history });
    assertConforms(key?.epoch === 0 && more.length === 0, 'exactly epoch 0');
    assertEqual(key.status, 'verified', 'status of the opened boxes');
  },
);

for (const [word, description] of [
  ['empty', ''],
  ['longest', 'x'.repeat(4_096)],
  ['unprintable', 'a\u0000\u001b\u202e%00 '],
] as const) {
  create.check(
    `description-${word}`,
    { source: '05 §4.1, §4.5', title: `stores a description that is ${word}` },
    async (context) => {
      const owner = await context.testAccount();
      const group = await TestGroup.create(context, owner, { description });
      assertEqual(
        (await resolveGroup(group, owner)).description,
        description,
        'the description in the state',
      );
      const { outcomes } = await readChain(group, owner);
      const { payload } = eventOf(outcomes[0] as (typeof outcomes)[0]);
      assertEqual(
        (payload as JsonObject).description,
        description,
        'the description in the signed event',
      );
    },
  );
}

create.check(
  'largest-capacity',
  { source: '05 §8.3', title: 'accepts a capacity of max_group_members and refuses more' },
  async (context) => {
    const owner = await context.testAccount();
    const member_capacity = await relayLimit(context, 'max_group_members');
    await TestGroup.create(context, owner, { member_capacity });
    const over = TestGroup.draft(context, owner, { member_capacity: member_capacity + 1 });
    await context.expectError(owner.caller, { method, params: over.createParams }, 'bad_request');
  },
);

/** Invalid members of a creation. */
const invalidMembers: Readonly<Record<string, JsonObject>> = {
  'an empty name': { name: '' },
  'a name of whitespace': { name: ' \t\u3000' },
  'a name of 257 bytes': { name: `${'é'.repeat(128)}x` },
  'a description of whitespace': { description: ' \n' },
  'a description of 4,097 bytes': { description: 'x'.repeat(4_097) },
  'no capacity': { member_capacity: 0 },
  'a negative capacity': { member_capacity: -1 },
  'an unknown policy': { invite_policy: 'everybody' },
  prev_hash: { prev_hash: `sha256:${'A'.repeat(43)}` },
};

create.check(
  'refused-facts',
  {
    source: '05 §4.1, §4.5',
    title: 'refuses invalid names, descriptions, capacities and policies',
  },
  async (context) => {
    const owner = await context.testAccount();
    const drafts = Object.entries(invalidMembers).map(([what, overrides]) => {
      return [what, TestGroup.draft(context, owner, overrides).createParams] as const;
    });
    await assertAllRefused({ by: owner, method, codes: ['bad_request'] }, drafts);
  },
);

create.check(
  'refused-id',
  {
    source: '05 §3.2, §13.2',
    title: 'refuses an ID that is not derived from nonce, creator and relay',
  },
  async (context) => {
    const [owner, other] = (await testAccounts(context, 2)) as [TestAccount, TestAccount];
    const nonce = createGroupNonce(nodeRandom);
    const identity = { creator: owner.account.id, nonce, relay_id: context.relayId };
    const id = (part: Partial<typeof identity>) =>
      deriveGroupId(context.network, { ...identity, ...part });
    const drafts = [
      ['another nonce', id({ nonce: createGroupNonce(nodeRandom) })],
      ['another creator', id({ creator: other.account.id })],
      ['another relay', id({ relay_id: `0x${'1'.repeat(40)}` })],
    ] as const;
    const calls = drafts.map(([what, group_id]) => {
      return [
        `an ID of ${what}`,
        TestGroup.draft(context, owner, { nonce, group_id }).createParams,
      ] as const;
    });
    await assertAllRefused({ by: owner, method, codes: ['bad_request'] }, calls);
    const group_id = id({});
    const right = TestGroup.draft(context, owner, { nonce, group_id });
    await context.expectOk(owner.caller, method, right.createParams);
  },
);

create.check(
  'another-owner',
  { source: '05 §13.2', title: 'refuses to create a group for another account' },
  async (context) => {
    const [owner, other] = (await testAccounts(context, 2)) as [TestAccount, TestAccount];
    const theirs = TestGroup.draft(context, other);
    const params = { ...theirs.createParams, create: theirs.sign(theirs.create, owner) };
    await context.expectError(owner.caller, { method, params }, 'forbidden');
  },
);

create.check(
  'taken',
  { source: '05 §13.2', title: 'refuses an existing ID, with the same or other content' },
  async (context) => {
    const { owner, group } = await groupFixture(context);
    await context.expectError(
      owner.caller,
      { method, params: group.createParams },
      'state_conflict',
    );
    const { nonce, group_id } = group.create;
    const other = TestGroup.draft(context, owner, { nonce, group_id, name: 'another' });
    await context.expectError(
      owner.caller,
      { method, params: other.createParams },
      'state_conflict',
    );
    assertEqual((await resolveGroup(group, owner)).name, 'club', 'the name of the first group');
    await group.close();
    await context.expectError(
      owner.caller,
      { method, params: group.createParams },
      'state_conflict',
    );
  },
);

create.check(
  'race',
  { source: '05 §13.2', title: 'one of several concurrent creations of one ID succeeds' },
  async (context) => {
    const owner = await context.testAccount();
    const group = TestGroup.draft(context, owner);
    const call = () => owner.caller.call(method, group.createParams);
    const answers = await Promise.all(Array.from({ length: 4 }, call));
    assertEqual(answers.filter(({ ok }) => ok).length, 1, 'exactly one succeeds');
    for (const answer of answers) {
      assertConforms(
        answer.ok || answer.code === 'state_conflict',
        'the others are state_conflict',
      );
    }
    await readChain(group, owner);
  },
);

export const groupCreateChecks = create.list;
