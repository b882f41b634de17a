/** Recovery requests and preparations, which end after a period of the relay (05 §9.3, §13.26). */
import type { JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import { relayTime, requireShortPeriod, untilRelayTime } from '../../fixtures/relay-info.ts';
import type { TestAccount, TestContext } from '../../fixtures/test-context.ts';
import { groupFixture } from '../../groups/group-fixture.ts';
import { GroupListeners } from '../../groups/group-listeners.ts';
import { readRecoveries } from '../../groups/group-lists.ts';
import { idsOf, newSecret } from '../../groups/group-objects.ts';
import { assertUnchanged } from '../../groups/group-reader.ts';
import type { TestGroup } from '../../groups/test-group.ts';
import { assertCommitRefused } from '../../groups/test-group.ts';
import type { WssCaller } from '../../transport/caller.ts';

const submit = checksOf('group.member.recovery.submit');
const listing = checksOf('group.member.recovery.list');
const prepare = checksOf('group.secret.rotation.prepare');
const commit = checksOf('group.secret.rotation.commit');

/** Asks for a new key. */
async function asked(context: TestContext, by: TestAccount, request: JsonObject) {
  const answer = await context.expectOk(by.caller, 'group.member.recovery.submit', request);
  const times = answer as { readonly accepted_at: number; readonly expires_at: number };
  requireShortPeriod(times.expires_at - times.accepted_at, 'recovery requests are open');
  return times;
}

/** Prepares a secret with boxes for all members. */
async function prepared(group: TestGroup, secret: Uint8Array, batch: readonly TestAccount[]) {
  const { expires_at } = await group.prepare(group.prepareParams(secret, batch));
  requireShortPeriod(expires_at - (await relayTime(group.context)), 'rotations can be committed');
  return expires_at;
}

submit.check(
  'expires',
  {
    source: '05 §9.3, §13.21 to §13.24',
    title: 'a request ends at expires_at; the same one sent again is a new request',
    waitsForPeriod: true,
  },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1 });
    const [ben] = members as [TestAccount];
    const request = group.recoveryRequest(ben);
    await assertUnchanged(group, owner, async () => {
      const first = await asked(context, ben, request);
      await untilRelayTime(context, first.expires_at);
      assertEqual((await readRecoveries(group, owner)).requests.length, 0, 'it is not listed');
      const params = { group_id: group.groupId, accounts: idsOf([ben]) };
      const codes = ['not_found'] as const;
      for (const by of [owner, ben]) {
        const call = { by, method: 'group.member.recovery.reject', codes };
        await assertAllRefused(call, [['a request that is over', params]]);
      }
      const approval = group.approvalParams([ben], { kind: 'group.member.recovery.approval' });
      const call = { by: owner, method: 'group.member.recovery.approve', codes };
      await assertAllRefused(call, [['a request that is over', approval]]);
      const second = await asked(context, ben, request);
      assertConforms(second.accepted_at >= first.expires_at, 'a later acceptance');
      assertConforms(second.expires_at > first.expires_at, 'a later expires_at');
    });
  },
);

listing.check(
  'hints-expired',
  {
    source: '05 §15.4',
    title: 'notifies managers and the account if a request expires',
    transports: ['wss'],
    waitsForPeriod: true,
  },
  async (context) => {
    const { group, owner, members, administrators } = await groupFixture(context, {
      members: 1,
      administrators: 1,
    });
    const [ben, ada] = [...members, ...administrators] as [TestAccount, TestAccount];
    const ears = [owner, ada, ben];
    await GroupListeners.of(group, ears);
    await asked(context, ben, group.recoveryRequest(ben));
    for (const by of ears) {
      // The hint of the submission may come first.
      do {
        const caller = by.caller as WssCaller;
        const { group_id } = await caller.notification('group.member.recovery.changed', 20_000);
        assertEqual(group_id, group.groupId, 'the group of the hint');
      } while ((await readRecoveries(group, by)).requests.length > 0);
    }
  },
);

prepare.check(
  'expired',
  {
    source: '05 §13.26',
    title: 'refuses boxes after the preparation has expired',
    waitsForPeriod: true,
  },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    const secret = newSecret();
    const end = await prepared(group, secret, [owner]);
    await untilRelayTime(context, end);
    const call = { by: owner, method: 'group.secret.rotation.prepare' };
    const again = [['a preparation that is over', group.prepareParams(secret, [owner])]] as const;
    await assertAllRefused({ ...call, codes: ['state_conflict'] }, again);
    const next = await prepared(group, newSecret(), [owner]);
    assertConforms(next > end, 'a later expires_at for another secret');
  },
);

commit.check(
  'expired',
  { source: '05 §13.27', title: 'refuses to commit an expired preparation', waitsForPeriod: true },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    const secret = newSecret();
    await untilRelayTime(context, await prepared(group, secret, [owner]));
    await assertUnchanged(group, owner, () => assertCommitRefused(group, secret));
    await group.rotate([owner]);
  },
);

export const groupLongPeriodChecks = [
  ...submit.list,
  ...listing.list,
  ...prepare.list,
  ...commit.list,
];
