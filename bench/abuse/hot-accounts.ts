import { type Attack, hammer, hold, openKit, openSession } from './attack.ts';

export const hotAccounts: Attack = {
  title: '8 accounts read and write as fast as they can, refused for rate or not',
  hasPreparation: true,
  async run(target, signal, begun) {
    await using context = await openKit(target);
    for (let count = 0; count < 8 && !signal.aborted; count += 1) {
      const { caller, device } = await openSession(context);
      const call = (id: number) =>
        id % 2 === 0
          ? { method: 'message.timeline.sync', params: {} }
          : {
              method: 'profile.publish',
              params: { ...context.profile(device, { nickname: `hot ${id}` }) },
            };
      await hammer(target, caller.socket, { signal, call });
    }
    begun();
    await hold(signal);
  },
};
