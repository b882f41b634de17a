/** Approval of applications (05 §8.2, §8.3, §13.15). */
import type { JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import { withDevice } from '../../fixtures/test-accounts.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';
import { groupFixture } from '../../groups/group-fixture.ts';
import { readApplications, readInvites } from '../../groups/group-lists.ts';
import { newSecret } from '../../groups/group-objects.ts';
import {
  assertChainMatches,
  assertUnchanged,
  eventOf,
  messagesOf,
  readChain,
  readEpochSecret,
  readEpochs,
  resolveGroup,
  textsOf,
} from '../../groups/group-reader.ts';

const approve = checksOf('group.application.approve');
const method = 'group.application.approve';

approve.check(
  'admits',
  { source: '05 §13.15, §7.2', title: 'adds members in one event and one new epoch' },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 2 });
    const { state: before } = await readChain(group, owner);
    await group.admit(...strangers);
    const chain = await readChain(group, owner);
    assertChainMatches(group, chain);
    assertEqual(chain.outcomes.length, 2, 'one event');
    assertConforms(chain.state.epoch > before.epoch, 'a greater epoch');
    assertEqual(
      chain.state.client_secret_commitment,
      before.client_secret_commitment,
      'one secret',
    );
    for (const { account } of strangers) {
      const member = chain.state.members.get(account.id);
      assertEqual(member?.role, 'member', 'role member');
      const { publicKey } = group.keys.of(account.id);
      assertEqual(member?.member_encryption_public_key, publicKey, "the application's key");
    }
    assertEqual((await resolveGroup(group, owner)).member_count, 3, 'member_count');
    assertEqual((await readApplications(group, owner)).applications.length, 0, 'none is pending');
    assertEqual((await readInvites(group, owner)).invites[0]?.uses, 2, 'both uses are counted');
  },
);

approve.check(
  'event',
  { source: '05 §4.9, §13.15', title: 'appends the approval unchanged' },
  async (context) => {
    const { group, strangers } = await groupFixture(context, { strangers: 1 });
    const [eve] = strangers as [TestAccount];
    await group.apply(eve, await group.invite());
    const params = group.approvalParams([eve], { overrides: { note: 'welcome' } });
    await group.write(method, params.approval, { params });
    const { outcomes } = await readChain(group, eve);
    const event = eventOf(outcomes.at(-1) as (typeof outcomes)[0]);
    assertEqual(event.payload, params.approval, 'unchanged');
  },
);

approve.check(
  'keys',
  { source: '05 §10.2, §7.5', title: 'gives new members keys and messages from the admission on' },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 1 });
    const [eve] = strangers as [TestAccount];
    await group.send(owner, 0);
    await group.admit(eve);
    const { state } = await readChain(group, eve);
    const secret = await readEpochSecret(group, owner);
    const message = group.sealedMessage(owner, secret, 'good morning');
    await context.expectOk(owner.caller, 'group.message.send', message);
    const epochs = await readEpochs(group, eve);
    assertConforms(
      epochs.length === 1 && epochs[0] === state.epoch,
      'the epoch of the admission alone',
    );
    const chain = await readChain(group, eve);
    assertEqual(messagesOf(chain).length, 1, 'no message from before the admission');
    const [text] = textsOf(context, chain, await readEpochSecret(group, eve));
    assertEqual(text, 'good morning', 'the message opens');
    assertEqual((await readEpochs(group, owner)).length, 2, 'the owner has both epochs');
  },
);

approve.check(
  'other-device',
  {
    source: '05 §10.2',
    title: "starts access of the application's device; other devices start later",
  },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 1, devices: 2 });
    const [eve] = strangers as [TestAccount];
    await group.admit(eve);
    const { epoch } = (await readChain(group, owner)).state;
    const sequence = await group.send(owner, epoch);
    assertEqual(messagesOf(await readChain(group, eve)).join(), String(sequence), 'its message');
    assertEqual(
      messagesOf(await readChain(group, withDevice(eve, 1))).length,
      0,
      'no message from before',
    );
    const later = await group.send(owner, epoch);
    assertEqual(
      messagesOf(await readChain(group, withDevice(eve, 1))).join(),
      String(later),
      'the next',
    );
  },
);

approve.check(
  'by-administrator',
  { source: '05 §6, §13.15', title: 'administrators may approve, also a former member' },
  async (context) => {
    const { group, owner, members, administrators } = await groupFixture(context, {
      members: 1,
      administrators: 1,
    });
    const [ben, ada] = [...members, ...administrators] as [TestAccount, TestAccount];
    const { publicKey } = group.keys.of(ben.account.id);
    await group.leave(ben);
    await group.apply(ben, await group.invite({}, ada));
    await group.approve([ben], ada);
    const { state } = await readChain(group, owner);
    const member = state.members.get(ben.account.id);
    assertConforms(member?.member_encryption_public_key !== publicKey, 'with the new key');
  },
);

approve.check(
  'boxes',
  { source: '05 §13.15', title: 'refuses boxes for other accounts than the approved ones' },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 2 });
    const [eve, fay] = strangers as [TestAccount, TestAccount];
    const invite = await group.invite();
    await group.apply(eve, invite);
    await group.apply(fay, invite);
    const params = group.approvalParams([eve]);
    const both = group.approvalParams([eve, fay]).client_secret_boxes as JsonObject;
    const boxes = params.client_secret_boxes as JsonObject;
    const calls = Object.entries({
      'no box': {},
      'a box too many': both,
      "another's box": { [fay.account.id]: both[fay.account.id] },
      'a box without an account': { unknown: boxes[eve.account.id] },
    }).map(([what, client_secret_boxes]) => [what, { ...params, client_secret_boxes }] as const);
    await assertAllRefused({ by: owner, method, codes: ['bad_request'] }, calls);
    await context.expectOk(owner.caller, method, params);
  },
);

approve.check(
  'batch-form',
  { source: '05 §13.15', title: 'refuses an empty batch and a repeated account' },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 1 });
    const [eve] = strangers as [TestAccount];
    await group.apply(eve, await group.invite());
    const twice = group.approvalParams([eve]);
    const members = twice.approval.members as JsonObject[];
    const calls = [
      ['no account', group.approvalParams([])],
      [
        'an account twice',
        {
          ...twice,
          approval: group.chainBody('group.application.approval', {
            members: [...members, ...members],
          }),
        },
      ],
    ] as const;
    await assertAllRefused({ by: owner, method, codes: ['bad_request'] }, calls);
  },
);

approve.check(
  'no-application',
  {
    source: '05 §13.15',
    title: 'answers not_found and approves none if one account did not apply',
  },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 2 });
    const [eve, fay] = strangers as [TestAccount, TestAccount];
    await group.apply(eve, await group.invite());
    group.keys.propose(fay.account.id);
    await assertUnchanged(group, owner, () =>
      context.expectError(
        owner.caller,
        { method, params: group.approvalParams([eve, fay]) },
        'not_found',
      ),
    );
    assertEqual((await readInvites(group, owner)).invites[0]?.uses, 0, 'no use is consumed');
    assertEqual((await readApplications(group, owner)).applications.length, 1, 'still pending');
    await group.approve([eve]);
  },
);

approve.check(
  'repeat',
  {
    source: '05 §13.15',
    title: 'answers a repeat with state_conflict on the old head, not_found on the new',
  },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 1 });
    const [eve] = strangers as [TestAccount];
    await group.apply(eve, await group.invite());
    const params = group.approvalParams([eve]);
    await group.write(method, params.approval, { params });
    await context.expectError(owner.caller, { method, params }, 'state_conflict');
    await context.expectError(
      owner.caller,
      { method, params: group.approvalParams([eve]) },
      'not_found',
    );
    // The right is checked before both.
    const byEve = group.approvalParams([eve], { by: eve });
    await context.expectError(eve.caller, { method, params: byEve }, 'forbidden');
  },
);

approve.check(
  'replaced',
  { source: '05 §13.15', title: "answers state_conflict if the key is not the application's" },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 1 });
    const [eve] = strangers as [TestAccount];
    const invite = await group.invite();
    await group.apply(eve, invite);
    const params = group.approvalParams([eve]);
    await group.apply(eve, invite);
    await assertUnchanged(group, owner, () =>
      context.expectError(owner.caller, { method, params }, 'state_conflict'),
    );
    await group.approve([eve]);
  },
);

approve.check(
  'commitment',
  {
    source: '05 §13.15',
    title: 'answers state_conflict with another commitment than the current one',
  },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 1 });
    const [eve] = strangers as [TestAccount];
    await group.apply(eve, await group.invite());
    const client_secret_commitment = group.commitmentTo(newSecret());
    const params = { ...group.approvalParams([eve]), client_secret_commitment };
    await context.expectError(owner.caller, { method, params }, 'state_conflict');
    const old = group.commitment;
    await group.rotate([owner]);
    const outdated = { ...group.approvalParams([eve]), client_secret_commitment: old };
    await context.expectError(owner.caller, { method, params: outdated }, 'state_conflict');
    await group.approve([eve]);
    await readEpochs(group, eve);
  },
);

approve.check(
  'or-rejected',
  {
    source: '05 §12.6, §13.15',
    title: 'one of a concurrent approval and rejection takes effect, whole',
  },
  async (context) => {
    const { group, owner, administrators, strangers } = await groupFixture(context, {
      administrators: 1,
      strangers: 1,
    });
    const [ada, eve] = [...administrators, ...strangers] as [TestAccount, TestAccount];
    await group.apply(eve, await group.invite());
    const rejection = { group_id: group.groupId, accounts: [eve.account.id] };
    const [approved, rejected] = await Promise.all([
      owner.caller.call(method, group.approvalParams([eve])),
      ada.caller.call('group.application.reject', rejection),
    ]);
    assertConforms(approved.ok !== rejected.ok, 'exactly one succeeds');
    for (const answer of [approved, rejected]) {
      const isDeleted = answer.ok || ['not_found', 'state_conflict'].includes(answer.code);
      assertConforms(isDeleted, 'not_found or state_conflict for the other');
    }
    const { state } = await readChain(group, owner);
    assertEqual(state.members.has(eve.account.id), approved.ok, 'a member if and only if approved');
    const { applications } = await readApplications(group, owner);
    assertEqual(applications.length, 0, 'the number of applications');
  },
);

approve.check(
  'banned',
  { source: '05 §9.2, §13.15', title: 'does not admit an account that was banned since' },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 1 });
    const [eve] = strangers as [TestAccount];
    await group.apply(eve, await group.invite());
    await group.ban([eve]);
    const call = () => ({ method, params: group.approvalParams([eve]) });
    await context.expectError(owner.caller, call(), 'not_found', 'state_conflict');
    await group.unban([eve]);
    await context.expectError(owner.caller, call(), 'not_found');
  },
);

export const groupAdmissionChecks = approve.list;
