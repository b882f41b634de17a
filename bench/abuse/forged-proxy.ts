import { type Attack, openRaw, openSeveral, repeat } from './attack.ts';

export const forgedProxy: Attack = {
  title: '16 connections of a stranger call with the addresses of a forged proxy',
  async run(target, signal) {
    const { host, pathname } = new URL(target.https);
    const sockets = await openSeveral(16, () => openRaw(target), signal);
    let next = 0;
    const call = async (worker: number) => {
      const socket = sockets[worker];
      if (socket === undefined || socket.destroyed) return await pause();
      next += 1;
      const forged = `10.${next & 255}.${(next >> 8) & 255}.${(next >> 16) & 255}`;
      socket.write(
        `GET ${pathname}/relay/info HTTP/1.1\r\nHost: ${host}\r\nX-Forwarded-For: ${forged}\r\n\r\n`,
      );
      await new Promise<void>((resolve) => {
        const done = () => {
          socket.off('data', done).off('close', done);
          resolve();
        };
        socket.once('data', done).once('close', done);
      });
    };
    await repeat(sockets.length, call, signal);
  },
};

const pause = () => new Promise<void>((resolve) => setTimeout(resolve, 100));
