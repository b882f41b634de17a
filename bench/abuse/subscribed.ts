import type { WssCaller } from '@posthouse/conformance';
import { groupFixture } from '../../packages/conformance/src/groups/group-fixture.ts';
import { type Attack, hammer, openKit, repeat } from './attack.ts';

export const subscribedNeverReading: Attack = {
  title: 'an account with 32 subscribed WebSockets asks for pages and reads nothing; others write',
  hasPreparation: true,
  async run(target, signal, begun) {
    await using context = await openKit(target);
    const { group, owner, members } = await groupFixture(context, { members: 1 });
    const params = { group_id: group.groupId, after: 0 };
    const callers: WssCaller[] = [];
    for (let count = 0; count < 32; count += 1) {
      const caller = await context.wss();
      await context.authenticateDevice(caller, owner.device);
      await context.expectOk(caller, 'group.subscribe', { group_ids: [group.groupId] });
      caller.socket.pause(true);
      callers.push(caller);
    }
    const [writer] = members;
    if (writer === undefined) throw new Error('the group has no member');
    await group.send(writer, 1);
    const second = await context.wss();
    await context.authenticateDevice(second, writer.device);
    const call = () => ({ method: 'group.message.send', params: group.message(writer, 1) });
    await hammer(target, second.socket, { signal, call });
    begun();
    let id = 0;
    const ask = async () => {
      for (const { socket } of callers) {
        id += 1;
        socket.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'group.sync', params }));
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    };
    await repeat(1, ask, signal);
  },
};
