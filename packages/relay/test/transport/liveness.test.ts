import { beforeEach, expect, test, vi } from 'vitest';
import { Liveness } from '../../src/transport/liveness.ts';
import { ManualClock } from '../support/clock.ts';

/** 02 §18: a ping arrives after what was sent before it. */

const dead = vi.fn();
let clock: ManualClock;
let pings: Buffer[];
let sentBytes: number;
let liveness: Liveness;
beforeEach(() => {
  dead.mockClear();
  clock = new ManualClock();
  pings = [];
  sentBytes = 0;
  const random = (length: number) => new Uint8Array(length).fill(pings.length);
  liveness = new Liveness({
    ...{ context: { clock, random }, sentBytes: () => sentBytes, dead },
    socket: { ping: (data: Buffer) => void pings.push(data) },
  });
});

/** Checks every 30 seconds until the peer is dead; returns the seconds. */
function secondsUntilDead(): number {
  for (let seconds = 0; ; seconds += 30) {
    liveness.check();
    if (dead.mock.calls.length > 0) return seconds;
    clock.advance(30);
  }
}

test('a peer that does not answer a ping until the next one is dead', () => {
  expect(secondsUntilDead()).toBe(30);
  expect(pings.length).toBe(1);
});

test('with large messages before the ping, it has a second more for each 4,000 bytes', () => {
  sentBytes = 1_000_000;
  expect(secondsUntilDead()).toBe(270);
});

test('what it has read gives it no more time', () => {
  sentBytes = 1_000_000;
  liveness.check();
  liveness.pong(pings[0] as Buffer);
  expect(secondsUntilDead()).toBe(30);
});
