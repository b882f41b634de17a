import { type Attack, hold, openRaw, openSeveral } from './attack.ts';

export const idleConnections: Attack = {
  title: 'a stranger opens 2,500 connections, one after another, and leaves them idle',
  async run(target, signal) {
    await openSeveral(2_500, () => openRaw(target), signal);
    await hold(signal);
  },
};

const addresses = 10;

export const manyIdleConnections: Attack = {
  title: 'strangers at ten addresses open 10,000 connections, and leave them idle',
  async run(target, signal) {
    let next = 0;
    const open = () => {
      next += 1;
      return openRaw(target, `127.0.0.${2 + (next % addresses)}`);
    };
    const each = Array.from({ length: addresses }, () => openSeveral(1_000, open, signal));
    await Promise.all(each);
    await hold(signal);
  },
};
