import { type Attack, hold, openKit, repeat } from './attack.ts';

export const manySessions: Attack = {
  title: 'one device opens sessions as fast as it may, 8 at once',
  hasPreparation: true,
  async run(target, signal, begun) {
    await using context = await openKit(target);
    const account = context.account();
    const device = await account.device();
    await context.register(account, [device]);
    begun();
    const attempt = async () => {
      await context.authenticateDevice(context.https(), device);
    };
    // Calls of an address in debt are answered late.
    const attempts = repeat(8, () => attempt().catch(() => {}), signal);
    await Promise.race([attempts, hold(signal)]);
  },
};
