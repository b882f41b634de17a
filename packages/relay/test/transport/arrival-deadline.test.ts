import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { defaultLimits } from '../../src/limits.ts';
import { StepTurns } from '../../src/step-turns.ts';
import { ArrivalDeadline } from '../../src/transport/arrival-deadline.ts';
import { ManualClock } from '../support/clock.ts';
import { turn } from '../support/full-turns.ts';

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

describe('0019: those that are due at one moment', () => {
  let turns: StepTurns;
  let time: number;
  let waiting: ArrivalDeadline[];
  let ended: number[];

  /** Begins three, each of which takes all the time of a turn when it expires. */
  beforeEach(() => {
    deadline[Symbol.dispose]();
    turns = new StepTurns();
    time = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => time);
    ended = [];
    waiting = [0, 1, 2].map((index) => {
      const one = new ArrivalDeadline({
        ...{ context: { clock, limits }, period: 10_000, bytes: { dueTurns: turns } },
        owner: () => ({ kind: 'address', id: '192.0.2.1' }),
        hasSession: () => false,
        expired: () => {
          ended.push(index);
          time += 1_000;
        },
      });
      one.start();
      return one;
    });
  });
  afterEach(async () => {
    await turns.idle();
    vi.mocked(performance.now).mockRestore();
  });

  test('02 §18: one expires in the turn of the timers, and each other in a later turn', async () => {
    clock.advance(10);
    expect(ended).toEqual([0]);
    await turn();
    expect(ended).toEqual([0, 1]);
    await turn();
    expect(ended).toEqual([0, 1, 2]);
    clock.advance(1_000);
    await turns.idle();
    expect(ended).toEqual([0, 1, 2]);
  });

  test.each([
    ['whose message completes', (one: ArrivalDeadline) => one.reset()],
    ['that is disposed', (one: ArrivalDeadline) => one[Symbol.dispose]()],
  ])('02 §18: one %s while it waits for its turn does not expire', async (_, end) => {
    clock.advance(10);
    end(waiting[1] as ArrivalDeadline);
    await turns.idle();
    expect(ended).toEqual([0, 2]);
    clock.advance(1_000);
    await turns.idle();
    expect(ended).toEqual([0, 2]);
  });

  test('02 §18: one whose message completes while it waits has a whole period for the next', async () => {
    clock.advance(10);
    const next = waiting[1] as ArrivalDeadline;
    next.reset();
    next.start();
    await turns.idle();
    expect(ended).toEqual([0, 2]);
    clock.advance(9);
    await turns.idle();
    expect(ended).toEqual([0, 2]);
    clock.advance(1);
    await turns.idle();
    expect(ended).toEqual([0, 2, 1]);
  });

  test('02 §18: one that waits for its turn does not begin a new period', async () => {
    const after = vi.spyOn(clock, 'after');
    clock.advance(10);
    for (const one of waiting.slice(1)) {
      one.receive(1_000);
      one.pause();
      one.start();
    }
    expect(after).not.toHaveBeenCalled();
    await turns.idle();
    expect(ended).toEqual([0, 1, 2]);
  });
});
