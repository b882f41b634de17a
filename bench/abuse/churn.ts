import { once } from 'node:events';
import { type Attack, openRaw, repeat } from './attack.ts';

export const churn: Attack = {
  title: 'a stranger opens a connection for each call, 8 at once',
  async run(target, signal) {
    const { host, pathname } = new URL(target.https);
    const get = `GET ${pathname}/relay/info HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
    const call = async () => {
      const socket = await openRaw(target);
      if (socket.destroyed) return;
      const closed = once(socket, 'close').catch(() => {});
      socket.resume().write(get);
      await closed;
    };
    await repeat(8, call, signal);
  },
};
