/** Approval of key recovery (05 §9.3, §10.3, §13.23). */

import { assertConforms, assertEqual } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import { withDevice } from '../../fixtures/test-accounts.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';
import { groupFixture } from '../../groups/group-fixture.ts';
import { readRecoveries } from '../../groups/group-lists.ts';
import { newSecret } from '../../groups/group-objects.ts';
import {
  assertChainMatches,
  assertUnchanged,
  messagesOf,
  openKeys,
  readChain,
  readEpochs,
  readKeyPage,
} from '../../groups/group-reader.ts';

const approve = checksOf('group.member.recovery.approve');
const kind = 'group.member.recovery.approval';

approve.check(
  'replaces-key',
  { source: '05 §13.23, §7.2', title: 'makes the new keys current in one event and epoch' },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 2 });
    const { state: before } = await readChain(group, owner);
    for (const by of members) await group.requestRecovery(by);
    await group.recover(members);
    const chain = await readChain(group, owner);
    assertChainMatches(group, chain);
    assertConforms(chain.outcomes.length === 3 && chain.state.epoch > before.epoch, 'one event');
    for (const { account } of members) {
      const { publicKey } = group.keys.of(account.id);
      const member = chain.state.members.get(account.id);
      assertEqual(member?.member_encryption_public_key, publicKey, 'the new key');
      assertEqual(member?.role, 'member', 'the same role');
    }
    assertEqual((await readRecoveries(group, owner)).requests.length, 0, 'the number of requests');
  },
);

approve.check(
  'access',
  {
    source: '05 §10.2, §10.3',
    title: 'restarts access of the requesting device, and later of the others',
  },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1, devices: 2 });
    const [ben] = members as [TestAccount];
    const [phone, laptop] = [withDevice(ben, 0), withDevice(ben, 1)];
    await readChain(group, laptop);
    const { epoch } = (await readChain(group, phone)).state;
    await group.send(owner, epoch);
    await group.requestRecovery(laptop);
    assertEqual(messagesOf(await readChain(group, phone)).length, 1, 'messages after the request');
    await group.recover([ben]);
    const { epoch: now } = (await readChain(group, owner)).state;
    const sequence = await group.send(owner, now);
    const chain = await readChain(group, laptop);
    assertEqual(messagesOf(chain).join(), String(sequence), 'messages from the event on');
    assertEqual((await readEpochs(group, laptop)).join(), String(now), 'keys from its epoch on');
    assertEqual(messagesOf(await readChain(group, phone)).length, 0, 'messages of the old access');
    const next = await group.send(owner, now);
    assertEqual(
      messagesOf(await readChain(group, phone)).join(),
      String(next),
      'messages after the new access',
    );
  },
);

approve.check(
  'boxes',
  { source: '05 §7.4, §7.5', title: 'serves the new box for the new key from that epoch on' },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    await group.requestRecovery(owner);
    await group.recover([owner]);
    const { state, history } = await readChain(group, owner);
    const page = await readKeyPage(group, owner);
    const results = openKeys(group, owner, { page, history });
    assertConforms(results.length === 1 && results[0]?.epoch === state.epoch, 'the new epoch only');
    assertEqual(results[0]?.status, 'verified', 'its box opens with the new key');
  },
);

approve.check(
  'targets',
  { source: '05 §6, §13.23', title: 'administrators may approve for ordinary members only' },
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
    for (const by of [owner, ben, ada, amy]) await group.requestRecovery(by);
    const calls = Object.entries({ owner: [owner], itself: [ada], peer: [amy], both: [ben, amy] });
    await assertUnchanged(group, owner, () =>
      assertAllRefused(
        { by: ada, method: 'group.member.recovery.approve', codes: ['forbidden'] },
        calls.map(
          ([what, batch]) => [what, group.approvalParams(batch, { by: ada, kind })] as const,
        ),
      ),
    );
    await group.recover([ben], ada);
    // The owner may approve all requests, also its own.
    await group.recover([owner, ada, amy]);
    await readChain(group, owner);
  },
);

approve.check(
  'refused',
  { source: '05 §13.23', title: 'refuses missing requests, other keys and other commitments' },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 2 });
    const [ben, cem] = members as [TestAccount, TestAccount];
    const method = 'group.member.recovery.approve';
    await group.requestRecovery(ben);
    const asked = group.keys.candidate(ben.account.id);
    group.keys.propose(cem.account.id);
    const both = group.approvalParams([ben, cem], { kind });
    const one = group.approvalParams([ben], { kind });
    const client_secret_commitment = group.commitmentTo(newSecret());
    await assertUnchanged(group, owner, async () => {
      await context.expectError(owner.caller, { method, params: both }, 'not_found');
      const other = { method, params: { ...one, client_secret_commitment } };
      await context.expectError(owner.caller, other, 'state_conflict');
      const empty = { method, params: { ...one, client_secret_boxes: {} } };
      await context.expectError(owner.caller, empty, 'bad_request');
      await context.expectError(
        owner.caller,
        { method, params: group.approvalParams([], { kind }) },
        'bad_request',
      );
      group.keys.propose(ben.account.id);
      const otherKey = { method, params: group.approvalParams([ben], { kind }) };
      await context.expectError(owner.caller, otherKey, 'state_conflict');
    });
    await group.write(method, one.approval, { params: one });
    group.keys.activate(ben.account.id, asked);
    await context.expectError(owner.caller, { method, params: one }, 'state_conflict');
  },
);

approve.check(
  'left',
  { source: '05 §9.3, §13.23', title: 'refuses to approve the request of a member that has left' },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1 });
    const [ben] = members as [TestAccount];
    await group.requestRecovery(ben);
    await group.leave(ben);
    const call = {
      method: 'group.member.recovery.approve',
      params: group.approvalParams([ben], { kind }),
    };
    await assertUnchanged(group, owner, () =>
      context.expectError(owner.caller, call, 'state_conflict', 'not_found'),
    );
  },
);

export const groupRekeyingChecks = approve.list;
