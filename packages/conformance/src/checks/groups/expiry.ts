/** What happens in a group without a call: expiry, devices that end, closing (05 §8.1, §15). */

import { demand } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import { eventually } from '../../fixtures/poll.ts';
import { refusesAll } from '../../fixtures/refusals.ts';
import { relayTime } from '../../fixtures/relay-info.ts';
import { at, keepDevices } from '../../fixtures/test-accounts.ts';
import type { Resident } from '../../fixtures/test-context.ts';
import { sceneOf } from '../../groups/group-fixture.ts';
import { GroupListeners } from '../../groups/group-listeners.ts';
import { readApplications, readInvites } from '../../groups/group-lists.ts';
import { kindsOf, readChain, readEpochs, readHead } from '../../groups/group-reader.ts';
import type { WssCaller } from '../../transport/caller.ts';

const invite = checksOf('group.invite.resolve');
const application = checksOf('group.application.list');
const keys = checksOf('group.key.sync');
const close = checksOf('group.close');
const onWss = { transports: ['wss'] } as const;
/** Seconds an invitation lives that is to expire while a check waits. */
const shortLife = 3;

invite.check(
  'expired',
  { source: '05 §8.1, §8.2, §18', title: 'an invitation that expires ends all that depends on it' },
  async (stage) => {
    const { group, owner, strangers } = await sceneOf(stage, { strangers: 2 });
    const [eve, fay] = strangers as [Resident, Resident];
    const expires_at = (await relayTime(stage)) + shortLife;
    const short = await group.invite({ expires_at });
    const lasting = await group.invite();
    await group.apply(eve, short);
    const params = { group_id: group.groupId, invite_id: short.invite_id };
    await eventually('an invitation that is over', async () => {
      const answer = await owner.caller.call('group.invite.resolve', params);
      demand(answer.ok || answer.code === 'not_found', 'not_found once it is over');
      return answer.ok ? undefined : true;
    });
    demand((await relayTime(stage)) >= expires_at, 'and not before');
    const { invites } = await readInvites(group, owner);
    demand(invites.length === 1, 'one is listed');
    demand(invites[0]?.invite.invite_id === lasting.invite_id, 'the one that lasts');
    demand((await readApplications(group, owner)).applications.length === 0, 'no application');
    const looking = [['looking', params]] as const;
    await refusesAll({ by: eve, method: 'group.resolve', codes: ['forbidden'] }, looking);
    const applying = [['applying', group.application(fay, short)]] as const;
    const submit = { by: fay, method: 'group.application.submit' };
    await refusesAll({ ...submit, codes: ['forbidden'] }, applying);
    const approve = { method: 'group.application.approve', params: group.approval([eve]) };
    await stage.fail(owner.caller, approve, 'state_conflict', 'not_found');
    await group.apply(eve, lasting);
    await group.approve([eve]);
  },
);

application.check(
  'hints-expired',
  {
    source: '05 §15.3',
    title: 'tells managers when an invitation expires with applications',
    ...onWss,
  },
  async (stage) => {
    const { group, owner, strangers } = await sceneOf(stage, { strangers: 1 });
    const [eve] = strangers as [Resident];
    const expires_at = (await relayTime(stage)) + shortLife;
    await group.apply(eve, await group.invite({ expires_at }));
    await GroupListeners.of(group, [owner]);
    const { group_id } = await (owner.caller as WssCaller).notification(
      'group.application.changed',
    );
    demand(group_id === group.groupId, 'of this group');
    demand((await readApplications(group, owner)).applications.length === 0, 'the list is empty');
  },
);

keys.check(
  'hints-removed-device',
  { source: '05 §7.3, §15.2', title: 'tells readers when the relay changes its secret', ...onWss },
  async (stage) => {
    const { group, owner, members } = await sceneOf(stage, { members: 1, devices: 2 });
    const [ben] = members as [Resident];
    await readEpochs(group, at(ben, 1));
    const listeners = await GroupListeners.of(group, [owner]);
    const { sequence } = await readHead(group, owner);
    await keepDevices(stage, ben, [ben.device]);
    await listeners.hears(owner, sequence + 1);
    const chain = await readChain(group, owner);
    demand(kindsOf(chain).at(-1) === 'group.key.rotated', 'a rotation by the relay');
  },
);

close.check(
  'hints-event',
  { source: '05 §15.2', title: 'tells the last event to those who still may read', ...onWss },
  async (stage) => {
    const { group, owner, members } = await sceneOf(stage, { members: 1 });
    const [ben] = members as [Resident];
    const listeners = await GroupListeners.of(group, [owner, ben]);
    const { sequence } = await readHead(group, owner);
    await group.close();
    for (const by of [owner, ben]) {
      const answer = await by.caller.call('group.sync', { group_id: group.groupId });
      if (answer.ok) await listeners.hears(by, sequence + 1);
    }
  },
);

export const groupLaterChecks = [...invite.list, ...application.list, ...keys.list, ...close.list];
