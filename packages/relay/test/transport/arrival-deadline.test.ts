import { beforeEach, expect, test, vi } from 'vitest';
import { defaultLimits } from '../../src/limits.ts';
import { ArrivalDeadline } from '../../src/transport/arrival-deadline.ts';
import { StepTurns } from '../../src/transport/step-turns.ts';
import { ManualClock } from '../support/clock.ts';

/** 02 §18: how long a message or body may stay unfinished. */

const limits = { ...defaultLimits, slowMessageBytes: 100, slowMessageTimeout: 60_000 };
const expired = vi.fn();
let clock: ManualClock;
let hasSession: boolean;
let deadline: ArrivalDeadline;
beforeEach(() => {
  expired.mockClear();
  clock = new ManualClock();
  hasSession = true;
  deadline = new ArrivalDeadline({
    ...{ context: { clock, limits }, period: 10_000, expired },
    bytes: { dueTurns: new StepTurns() },
    owner: () => ({ kind: 'address', id: '192.0.2.1' }),
    hasSession: () => hasSession,
  });
  deadline.start();
});

test('without a session: one period, however much arrives', () => {
  hasSession = false;
  deadline.receive(1_000);
  clock.advance(9);
  expect(expired).not.toHaveBeenCalled();
  clock.advance(1);
  expect(expired).toHaveBeenCalledOnce();
});

test('with one: as long as enough arrives in each period', () => {
  for (let period = 0; period < 3; period += 1) {
    deadline.receive(100);
    clock.advance(10);
  }
  expect(expired).not.toHaveBeenCalled();
  deadline.receive(99);
  clock.advance(10);
  expect(expired).toHaveBeenCalledOnce();
});

test('and not for ever', () => {
  for (let period = 0; period < 6; period += 1) {
    expect(expired).not.toHaveBeenCalled();
    deadline.receive(100);
    clock.advance(10);
  }
  expect(expired).toHaveBeenCalledOnce();
});

test('the time of a period stands still in a pause, and begins anew for the next message', () => {
  clock.advance(6);
  deadline.pause();
  clock.advance(40);
  deadline.start();
  clock.advance(3);
  expect(expired).not.toHaveBeenCalled();
  deadline.reset();
  clock.advance(100);
  deadline.start();
  clock.advance(9);
  expect(expired).not.toHaveBeenCalled();
  clock.advance(1);
  expect(expired).toHaveBeenCalledOnce();
});

test('02 §18: with a session, pauses do not hold off the time in all', () => {
  for (let pause = 0; pause < 6; pause += 1) {
    expect(expired).not.toHaveBeenCalled();
    clock.advance(1);
    deadline.pause();
    clock.advance(9);
    deadline.start();
  }
  expect(expired).toHaveBeenCalledOnce();
});

test('02 §18: without a session, a pause does not lengthen the period', () => {
  hasSession = false;
  clock.advance(9);
  deadline.pause();
  deadline.start();
  clock.advance(1);
  expect(expired).toHaveBeenCalledOnce();
});

test('after its end, it does not begin again', () => {
  deadline[Symbol.dispose]();
  deadline.start();
  clock.advance(1_000);
  expect(expired).not.toHaveBeenCalled();
});
