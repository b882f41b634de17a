import { groupFixture } from '../../packages/conformance/src/groups/group-fixture.ts';
import { type Attack, hammer, hold, openKit } from './attack.ts';

/** Members, each with a connection that hears of every message. */
const size = 15;

export const hotGroups: Attack = {
  title: '8 of 16 members write to one group as fast as they can, 16 hear of it',
  hasPreparation: true,
  async run(target, signal, begun) {
    await using context = await openKit(target);
    const { group, members, owner } = await groupFixture(context, {
      members: size,
      overrides: { member_capacity: 2 * size },
    });
    const { groupId: group_id } = group;
    await group.send(owner, 1);
    for (const [index, account] of [owner, ...members].entries()) {
      await context.expectOk(account.caller, 'group.subscribe', { group_ids: [group_id] });
      const caller = await context.wss();
      await context.authenticateDevice(caller, account.device);
      if (index >= 8) continue;
      const call = () => ({ method: 'group.message.send', params: group.message(account, 1) });
      await hammer(target, caller.socket, { signal, call });
    }
    begun();
    await hold(signal);
  },
};
