import { once } from 'node:events';
import { connect } from 'node:net';
import { type Attack, hold, openRaw, openSeveral } from './attack.ts';

export const halfOpen: Attack = {
  title: 'a stranger leaves 1,000 TLS handshakes and 500 half-closed requests unfinished',
  async run(target, signal) {
    const { hostname, host, port, pathname } = new URL(target.https);
    for (let count = 0; count < 1_000 && !signal.aborted; count += 1) {
      const socket = connect({ host: hostname, port: Number(port) });
      socket.on('error', () => {});
      await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
    }
    const begun = `POST ${pathname}/auth/challenge HTTP/1.1\r\nHost: ${host}\r\n`;
    await openSeveral(
      500,
      async () => {
        const socket = await openRaw(target);
        socket.end(begun);
        return socket;
      },
      signal,
    );
    await hold(signal);
  },
};
