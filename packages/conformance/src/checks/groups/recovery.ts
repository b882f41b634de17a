import { checkGroupRecoveryAcceptance } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import type { TestAccount, TestContext } from '../../fixtures/test-context.ts';
import { groupFixture } from '../../groups/group-fixture.ts';
import { readRecoveries } from '../../groups/group-lists.ts';
import { idsOf } from '../../groups/group-objects.ts';
import { assertUnchanged, readChain } from '../../groups/group-reader.ts';

const submit = checksOf('group.member.recovery.submit');
const listing = checksOf('group.member.recovery.list');
const reject = checksOf('group.member.recovery.reject');
const kind = 'group.member.recovery.approval';

submit.check(
  'pends',
  {
    source: '05 §13.21, §13.22',
    title: 'stores the request until it expires and appends no event',
  },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1 });
    const [ben] = members as [TestAccount];
    const request = group.recoveryRequest(ben);
    const times = await assertUnchanged(group, owner, async () => {
      const answer = await context.expectOk(ben.caller, 'group.member.recovery.submit', request);
      checkGroupRecoveryAcceptance(answer);
      return answer;
    });
    const { requests } = await readRecoveries(group, owner);
    const [item, ...more] = requests;
    assertConforms(item !== undefined && more.length === 0, 'one request');
    assertEqual(item.request, request, 'the request is unchanged');
    assertEqual(item.accepted_at, times.accepted_at, 'accepted_at');
    assertEqual(item.expires_at, times.expires_at, 'expires_at');
    const { state } = await readChain(group, owner);
    const member = state.members.get(ben.account.id);
    const { publicKey } = group.keys.of(ben.account.id);
    assertEqual(
      member?.member_encryption_public_key,
      publicKey,
      'the old key stays the current one',
    );
  },
);

submit.check(
  'repeat',
  { source: '05 §13.21', title: 'an identical repeat over either transport changes no time' },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1 });
    const [ben] = members as [TestAccount];
    const request = group.recoveryRequest(ben);
    const method = 'group.member.recovery.submit';
    const first = await context.expectOk(ben.caller, method, request);
    const other = await context.deviceSession(ben.device, context.otherTransport);
    for (const caller of [ben.caller, other]) {
      const again = await context.expectOk(caller, method, request);
      assertEqual(again, first, 'the same times');
    }
    assertEqual((await readRecoveries(group, owner)).requests.length, 1, 'one request');
  },
);

submit.check(
  'replaces',
  { source: '05 §9.3, §13.21', title: "a new request replaces the account's previous one" },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1 });
    const [ben] = members as [TestAccount];
    await group.requestRecovery(ben);
    const old = group.approvalParams([ben], { kind });
    const request = await group.requestRecovery(ben);
    const { requests } = await readRecoveries(group, owner);
    assertEqual(requests.length, 1, 'one request');
    assertEqual(requests[0]?.request ?? null, request, 'the later request');
    const call = { method: 'group.member.recovery.approve', params: old };
    await context.expectError(owner.caller, call, 'state_conflict');
    await group.recover([ben]);
  },
);

submit.check(
  'same-key',
  { source: '05 §4.8, §13.21', title: 'refuses the current key' },
  async (context) => {
    const { group, members } = await groupFixture(context, { members: 1 });
    const [ben] = members as [TestAccount];
    const member_encryption_public_key = group.keys.of(ben.account.id).publicKey;
    const params = group.recoveryRequest(ben, { member_encryption_public_key });
    const call = { method: 'group.member.recovery.submit', params };
    await context.expectError(ben.caller, call, 'bad_request');
  },
);

submit.check(
  'another-account',
  { source: '05 §13.21', title: 'answers forbidden in the name of another member' },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1 });
    const [ben] = members as [TestAccount];
    const params = group.recoveryRequest(ben, { account: owner.account.id });
    const call = { method: 'group.member.recovery.submit', params };
    await context.expectError(ben.caller, call, 'forbidden');
  },
);

/** Creates a group with every role in which each account requests a new key. */
async function allAsking(context: TestContext) {
  const { group, owner, members, administrators } = await groupFixture(context, {
    members: 2,
    administrators: 2,
  });
  const [ben, cem] = members as [TestAccount, TestAccount];
  const [ada, amy] = administrators as [TestAccount, TestAccount];
  for (const by of [owner, ben, cem, ada, amy]) await group.requestRecovery(by);
  return { group, owner, ben, cem, ada, amy };
}

listing.check(
  'scope',
  { source: '05 §6, §13.22', title: 'lists the requests that the role may read' },
  async (context) => {
    const { group, owner, ben, cem, ada, amy } = await allAsking(context);
    const expected: [TestAccount, TestAccount[]][] = [
      [owner, [owner, ben, cem, ada, amy]],
      [ada, [ada, ben, cem]],
      [amy, [amy, ben, cem]],
      [ben, [ben]],
      [cem, [cem]],
    ];
    for (const [by, batch] of expected) {
      const { requests, next } = await readRecoveries(group, by);
      const seen = requests.map(({ request }) => request.account).sort();
      assertEqual(seen.join(), idsOf(batch).sort().join(), 'the listed accounts');
      if (batch.length === 1) assertEqual(next, undefined, 'no next cursor at the end');
    }
  },
);

reject.check(
  'deletes',
  { source: '05 §13.24', title: 'rejects requests of others and withdraws the own one in a batch' },
  async (context) => {
    const { group, owner, ben, cem, ada, amy } = await allAsking(context);
    const method = 'group.member.recovery.reject';
    const params = (...batch: TestAccount[]): JsonObject => {
      return { group_id: group.groupId, accounts: idsOf(batch) };
    };
    await assertUnchanged(group, owner, async () => {
      await context.expectOk(cem.caller, method, params(cem));
      await context.expectOk(ada.caller, method, params(ada, ben));
      await context.expectOk(owner.caller, method, params(owner, amy));
    });
    assertEqual((await readRecoveries(group, owner)).requests.length, 0, 'the number of requests');
    await context.expectError(ben.caller, { method, params: params(ben) }, 'not_found');
    await group.requestRecovery(ben);
    await group.recover([ben]);
  },
);

reject.check(
  'rights',
  {
    source: '05 §6, §13.24',
    title: 'answers forbidden and rejects none if one is outside the right',
  },
  async (context) => {
    const { group, owner, ben, cem, ada, amy } = await allAsking(context);
    const method = 'group.member.recovery.reject';
    const refused = (by: TestAccount, ...batches: TestAccount[][]) =>
      assertAllRefused(
        { by, method, codes: ['forbidden'] },
        batches.map((batch, index) => {
          return [`batch ${index}`, { group_id: group.groupId, accounts: idsOf(batch) }] as const;
        }),
      );
    await refused(ada, [owner], [amy], [ben, amy]);
    await refused(ben, [cem], [ben, cem], [owner]);
    assertEqual((await readRecoveries(group, owner)).requests.length, 5, 'the number of requests');
  },
);

reject.check(
  'missing',
  {
    source: '05 §13.24',
    title: 'answers not_found and rejects none if one account has no request',
  },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 2 });
    const [ben] = members as [TestAccount];
    await group.requestRecovery(ben);
    const method = 'group.member.recovery.reject';
    const both = { group_id: group.groupId, accounts: idsOf(members) };
    await context.expectError(owner.caller, { method, params: both }, 'not_found');
    assertEqual((await readRecoveries(group, owner)).requests.length, 1, 'the number of requests');
    const empty = { group_id: group.groupId, accounts: [] };
    await context.expectError(owner.caller, { method, params: empty }, 'bad_request');
  },
);

export const groupRecoveryChecks = [...submit.list, ...listing.list, ...reject.list];
