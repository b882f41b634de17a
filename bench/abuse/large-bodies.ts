import { once } from 'node:events';
import { type Attack, openRaw } from './attack.ts';

export const largeBodies: Attack = {
  title: '8 connections of a stranger send bodies of 2 MiB, one after another',
  async run(target, signal) {
    const { host, pathname } = new URL(target.https);
    const request = Buffer.concat([
      Buffer.from(
        `POST ${pathname}/auth/challenge HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n` +
          'Content-Type: application/json\r\nContent-Length: 2097152\r\n\r\n',
      ),
      Buffer.alloc(2_097_152, ' '),
    ]);
    const repeat = async () => {
      while (!signal.aborted) {
        const socket = await openRaw(target);
        const end = () => socket.destroy();
        signal.addEventListener('abort', end, { once: true });
        if (!socket.destroyed) {
          // `once` rejects if the relay ends the connection while the body is written.
          const closed = once(socket, 'close').catch(() => {});
          socket.resume().write(request);
          await closed;
        }
        signal.removeEventListener('abort', end);
      }
    };
    await Promise.all(Array.from({ length: 8 }, repeat));
  },
};
