import { type Attack, openKit, repeat } from './attack.ts';

export const wrongSignatures: Attack = {
  title: '8 WebSockets of a stranger log in with wrong signatures, as fast as they may',
  hasPreparation: true,
  async run(target, signal, begun) {
    await using context = await openKit(target);
    const account = context.account();
    const device = await account.device();
    const sockets = await Promise.all(Array.from({ length: 8 }, () => context.wss()));
    begun();
    const attempt = async (worker: number) => {
      const caller = sockets[worker];
      const answer = await caller?.call('auth.challenge', { account: account.id });
      if (answer?.ok !== true) return;
      const { nonce } = answer.result as { readonly nonce: string };
      const proof = context.deviceProof(device, nonce);
      await caller?.call('auth.device.verify', { ...proof, device_signature: 'A'.repeat(86) });
    };
    await repeat(8, attempt, signal);
  },
};
