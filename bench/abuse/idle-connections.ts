import { type Attack, hold, openRaw, openSeveral } from './attack.ts';

export const idleConnections: Attack = {
  title: 'a stranger opens 2,500 connections, one after another, and leaves them idle',
  async run(target, signal) {
    await openSeveral(2_500, () => openRaw(target), signal);
    await hold(signal);
  },
};
