import { nodeRandom } from '@posthouse/primitives-node';
import {
  canonicalJson,
  createGroupNonce,
  deriveGroupId,
  type JsonObject,
} from '@posthouse/protocol';
import { demand } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import { unixSeconds } from '../../fixtures/account.ts';
import { refusesAll } from '../../fixtures/refusals.ts';
import { relayLimit } from '../../fixtures/relay-info.ts';
import { residents } from '../../fixtures/test-accounts.ts';
import type { Resident } from '../../fixtures/test-context.ts';
import { sceneOf } from '../../groups/group-fixture.ts';
import {
  eventOf,
  openKeys,
  readChain,
  readKeyPage,
  resolveGroup,
} from '../../groups/group-reader.ts';
import { GroupActors } from '../../groups/test-group.ts';

const create = checksOf('group.create');
const method = 'group.create';

create.check(
  'founds',
  { source: '05 §13.2', title: 'starts a chain at 0, in epoch 0, with its creator as owner' },
  async (stage) => {
    const owner = await stage.resident();
    const group = await GroupActors.found(stage, owner, { name: ' the club ' });
    const { state, outcomes } = await readChain(group, owner);
    demand(outcomes.length === 1, 'one event');
    const event = eventOf(outcomes[0] as (typeof outcomes)[0]);
    demand(event.sequence === 0 && event.epoch === 0, 'at 0, in epoch 0');
    demand(canonicalJson(event.payload) === canonicalJson(group.create), 'unchanged');
    demand(event.signer_device_id === owner.device.id, 'signed by the calling device');
    demand(Math.abs(event.accepted_at - unixSeconds()) <= 300, 'accepted now');
    demand(state.members.get(owner.account.id)?.role === 'owner', 'the creator is the owner');
    demand(state.head === group.head, 'the head of the chain is its digest');
  },
);

create.check(
  'state',
  { source: '05 §4.1, §13.2', title: 'makes the state that is served for display' },
  async (stage) => {
    const owner = await stage.resident();
    const facts = { name: 'é'.repeat(128), member_capacity: 3, invite_policy: 'members_targeted' };
    const group = await GroupActors.found(stage, owner, facts);
    const {
      group_id,
      status,
      owner: of,
      member_count,
      description,
      ...rest
    } = await resolveGroup(group, owner);
    demand(group_id === group.groupId && status === 'active', 'active, under its ID');
    demand(of === owner.account.id && member_count === 1, 'the owner is the only member');
    demand(description === '', 'an omitted description is empty');
    demand(canonicalJson(rest) === canonicalJson(facts), 'name, capacity and policy as created');
  },
);

create.check(
  'keys',
  { source: '05 §13.2, §10.2', title: 'gives the creator the keys of epoch 0' },
  async (stage) => {
    const owner = await stage.resident();
    const group = await GroupActors.found(stage, owner);
    const { history } = await readChain(group, owner);
    const page = await readKeyPage(group, owner);
    const [key, ...more] = openKeys(group, owner, { page, history });
    demand(key?.epoch === 0 && more.length === 0, 'exactly epoch 0');
    demand(key.status === 'verified', `the boxes open and match the commitment: ${key.status}`);
  },
);

for (const [word, description] of [
  ['empty', ''],
  ['longest', 'x'.repeat(4_096)],
  ['unprintable', 'a\u0000\u001b\u202e%00 '],
] as const) {
  create.check(
    `description-${word}`,
    { source: '05 §4.1, §4.5', title: `keeps a description that is ${word}` },
    async (stage) => {
      const owner = await stage.resident();
      const group = await GroupActors.found(stage, owner, { description });
      demand((await resolveGroup(group, owner)).description === description, 'in the state');
      const { outcomes } = await readChain(group, owner);
      const { payload } = eventOf(outcomes[0] as (typeof outcomes)[0]);
      demand((payload as JsonObject).description === description, 'and in the signed body');
    },
  );
}

create.check(
  'largest-capacity',
  { source: '05 §8.3', title: 'allows a capacity of max_group_members and no more' },
  async (stage) => {
    const owner = await stage.resident();
    const member_capacity = await relayLimit(stage, 'max_group_members');
    await GroupActors.found(stage, owner, { member_capacity });
    const over = GroupActors.draft(stage, owner, { member_capacity: member_capacity + 1 });
    await stage.fail(owner.caller, { method, params: over.creation }, 'bad_request');
  },
);

/** Facts no creation may have. */
const wrongFacts: Readonly<Record<string, JsonObject>> = {
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
  { source: '05 §4.1, §4.5', title: 'refuses names, texts, capacities and policies out of bounds' },
  async (stage) => {
    const owner = await stage.resident();
    const drafts = Object.entries(wrongFacts).map(([what, facts]) => {
      return [what, GroupActors.draft(stage, owner, facts).creation] as const;
    });
    await refusesAll({ by: owner, method, codes: ['bad_request'] }, drafts);
  },
);

create.check(
  'refused-id',
  { source: '05 §3.2, §13.2', title: 'refuses an ID that does not follow from what it binds' },
  async (stage) => {
    const [owner, other] = (await residents(stage, 2)) as [Resident, Resident];
    const nonce = createGroupNonce(nodeRandom);
    const identity = { creator: owner.account.id, nonce, relay_id: stage.relayId };
    const id = (part: Partial<typeof identity>) =>
      deriveGroupId(stage.network, { ...identity, ...part });
    const drafts = [
      ['another nonce', id({ nonce: createGroupNonce(nodeRandom) })],
      ['another creator', id({ creator: other.account.id })],
      ['another relay', id({ relay_id: `0x${'1'.repeat(40)}` })],
    ] as const;
    const calls = drafts.map(([what, group_id]) => {
      return [
        `an ID of ${what}`,
        GroupActors.draft(stage, owner, { nonce, group_id }).creation,
      ] as const;
    });
    await refusesAll({ by: owner, method, codes: ['bad_request'] }, calls);
    const group_id = id({});
    const right = GroupActors.draft(stage, owner, { nonce, group_id });
    await stage.succeed(owner.caller, method, right.creation);
  },
);

create.check(
  'another-owner',
  { source: '05 §13.2', title: 'refuses to found a group for somebody else' },
  async (stage) => {
    const [owner, other] = (await residents(stage, 2)) as [Resident, Resident];
    const theirs = GroupActors.draft(stage, other);
    const params = { ...theirs.creation, create: theirs.sign(theirs.create, owner) };
    await stage.fail(owner.caller, { method, params }, 'forbidden');
  },
);

create.check(
  'taken',
  { source: '05 §13.2', title: 'refuses an ID that is taken, with the same content or other' },
  async (stage) => {
    const { owner, group } = await sceneOf(stage);
    await stage.fail(owner.caller, { method, params: group.creation }, 'state_conflict');
    const { nonce, group_id } = group.create;
    const other = GroupActors.draft(stage, owner, { nonce, group_id, name: 'another' });
    await stage.fail(owner.caller, { method, params: other.creation }, 'state_conflict');
    demand((await resolveGroup(group, owner)).name === 'club', 'the first group stays as it was');
    await group.close();
    await stage.fail(owner.caller, { method, params: group.creation }, 'state_conflict');
  },
);

create.check(
  'race',
  { source: '05 §13.2', title: 'lets one of several creations of one ID win' },
  async (stage) => {
    const owner = await stage.resident();
    const group = GroupActors.draft(stage, owner);
    const call = () => owner.caller.call(method, group.creation);
    const answers = await Promise.all(Array.from({ length: 4 }, call));
    demand(answers.filter(({ ok }) => ok).length === 1, 'exactly one succeeds');
    for (const answer of answers) {
      demand(answer.ok || answer.code === 'state_conflict', 'the others are state_conflict');
    }
    await readChain(group, owner);
  },
);

export const groupCreateChecks = create.list;
