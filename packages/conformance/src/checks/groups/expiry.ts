/** Changes of a group without a call: expired invitations, removed devices (05 §8.1, §15). */

import { assertConforms, assertEqual } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import { pollUntil } from '../../fixtures/poll.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import { relayTime } from '../../fixtures/relay-info.ts';
import { publishDevices, withDevice } from '../../fixtures/test-accounts.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';
import { groupFixture } from '../../groups/group-fixture.ts';
import { GroupListeners } from '../../groups/group-listeners.ts';
import { readApplications, readInvites } from '../../groups/group-lists.ts';
import { kindsOf, readChain, readEpochs, readHead } from '../../groups/group-reader.ts';
import type { WssCaller } from '../../transport/caller.ts';

const invite = checksOf('group.invite.resolve');
const application = checksOf('group.application.list');
const keys = checksOf('group.key.sync');
const close = checksOf('group.close');
const onWss = { transports: ['wss'] } as const;
/** Lifetime in seconds of an invitation that expires during a check. */
const shortLife = 3;

invite.check(
  'expired',
  { source: '05 §8.1, §8.2, §18', title: 'an expired invitation ends with all its applications' },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 2 });
    const [eve, fay] = strangers as [TestAccount, TestAccount];
    const expires_at = (await relayTime(context)) + shortLife;
    const short = await group.invite({ expires_at });
    const lasting = await group.invite();
    await group.apply(eve, short);
    const params = { group_id: group.groupId, invite_id: short.invite_id };
    await pollUntil('an invitation that is over', async () => {
      const answer = await owner.caller.call('group.invite.resolve', params);
      assertConforms(answer.ok || answer.code === 'not_found', 'not_found after it has expired');
      return answer.ok ? undefined : true;
    });
    assertConforms((await relayTime(context)) >= expires_at, 'no not_found before it has expired');
    const { invites } = await readInvites(group, owner);
    assertEqual(invites.length, 1, 'one is listed');
    assertEqual(
      invites[0]?.invite.invite_id,
      lasting.invite_id,
      'the invitation that has not expired',
    );
    assertEqual((await readApplications(group, owner)).applications.length, 0, 'no application');
    const looking = [['looking', params]] as const;
    await assertAllRefused({ by: eve, method: 'group.resolve', codes: ['forbidden'] }, looking);
    const applying = [['applying', group.application(fay, short)]] as const;
    const submit = { by: fay, method: 'group.application.submit' };
    await assertAllRefused({ ...submit, codes: ['forbidden'] }, applying);
    const approve = { method: 'group.application.approve', params: group.approvalParams([eve]) };
    await context.expectError(owner.caller, approve, 'state_conflict', 'not_found');
    await group.apply(eve, lasting);
    await group.approve([eve]);
  },
);

application.check(
  'hints-expired',
  {
    source: '05 §15.3',
    title: 'notifies managers if an invitation expires with applications',
    ...onWss,
  },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 1 });
    const [eve] = strangers as [TestAccount];
    const expires_at = (await relayTime(context)) + shortLife;
    await group.apply(eve, await group.invite({ expires_at }));
    await GroupListeners.of(group, [owner]);
    const { group_id } = await (owner.caller as WssCaller).notification(
      'group.application.changed',
    );
    assertEqual(group_id, group.groupId, 'the group of the hint');
    assertEqual((await readApplications(group, owner)).applications.length, 0, 'the list is empty');
  },
);

keys.check(
  'hints-removed-device',
  { source: '05 §7.3, §15.2', title: 'notifies readers if the relay changes its secret', ...onWss },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1, devices: 2 });
    const [ben] = members as [TestAccount];
    await readEpochs(group, withDevice(ben, 1));
    const listeners = await GroupListeners.of(group, [owner]);
    const { sequence } = await readHead(group, owner);
    await publishDevices(context, ben, [ben.device]);
    await listeners.waitForHead(owner, sequence + 1);
    const chain = await readChain(group, owner);
    assertEqual(kindsOf(chain).at(-1), 'group.key.rotated', 'a rotation by the relay');
  },
);

close.check(
  'hints-event',
  { source: '05 §15.2', title: 'hints the last event to accounts that may still read', ...onWss },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1 });
    const [ben] = members as [TestAccount];
    const listeners = await GroupListeners.of(group, [owner, ben]);
    const { sequence } = await readHead(group, owner);
    await group.close();
    for (const by of [owner, ben]) {
      const answer = await by.caller.call('group.sync', { group_id: group.groupId });
      if (answer.ok) await listeners.waitForHead(by, sequence + 1);
    }
  },
);

export const groupExpiryChecks = [...invite.list, ...application.list, ...keys.list, ...close.list];
