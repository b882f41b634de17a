import { type Attack, hold, openKit, repeat } from './attack.ts';

export const newcomers: Attack = {
  title: 'a stranger makes accounts and pre-stores states of others, as fast as it may',
  async run(target, signal) {
    await using context = await openKit(target);
    /** Half of the workers publish a route too, which makes an account. */
    const attempt = async (worker: number) => {
      const account = context.account();
      const caller = context.https();
      await context.authenticateAccount(caller, account);
      const state = await account.state([await account.device()]);
      await caller.call('device.state.publish', state);
      if (worker % 2 === 1) return;
      const route = await account.route({ relayId: context.relayId });
      await caller.call('account.route.publish', route);
    };
    // Calls of an address in debt are answered late.
    const attempts = repeat(8, (worker) => attempt(worker).catch(() => {}), signal);
    await Promise.race([attempts, hold(signal)]);
  },
};
