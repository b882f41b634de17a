/** 02 §18: how long a WebSocket may be open without a session and without accepted calls. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { defaultLimits } from '../../src/limits.ts';
import { StepTurns } from '../../src/step-turns.ts';
import { UnboundDeadline } from '../../src/transport/unbound-deadline.ts';
import { ManualClock } from '../support/clock.ts';
import { turn } from '../support/full-turns.ts';

const limits = { ...defaultLimits, unboundTimeout: 60_000 };
let turns: StepTurns;
let clock: ManualClock;
let time: number;
let deadlines: [UnboundDeadline, UnboundDeadline, UnboundDeadline];
let ended: number[];
let busy: Set<number>;

/** Begins three, each of which takes all the time of a turn when it expires. */
beforeEach(() => {
  clock = new ManualClock();
  turns = new StepTurns();
  time = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => time);
  ended = [];
  busy = new Set();
  const begin = (index: number) => {
    const deadline = new UnboundDeadline({
      ...{ context: { clock, limits }, bytes: { dueTurns: turns } },
      owner: { kind: 'address', id: '192.0.2.1' },
      isBusy: () => busy.has(index),
      expired: () => {
        ended.push(index);
        time += 1_000;
      },
    });
    deadline.start();
    return deadline;
  };
  deadlines = [begin(0), begin(1), begin(2)];
});
/** Lets time pass, and the turns of those that are due then. */
async function pass(seconds: number): Promise<void> {
  clock.advance(seconds);
  await turns.idle();
}

afterEach(async () => {
  await turns.idle();
  vi.mocked(performance.now).mockRestore();
});

test('0019: of those that are due at one moment, one expires in each turn', async () => {
  clock.advance(59);
  expect(ended).toEqual([]);
  clock.advance(1);
  expect(ended).toEqual([0]);
  await turn();
  expect(ended).toEqual([0, 1]);
  await turn();
  expect(ended).toEqual([0, 1, 2]);
});

test('02 §18: one that gets a session while it waits for its turn does not expire', async () => {
  clock.advance(60);
  deadlines[1].stop();
  expect(deadlines[1].isRunning).toBe(false);
  await turns.idle();
  await pass(1_000);
  expect(ended).toEqual([0, 2]);
});

test('02 §18: one whose session ends while it waits for its turn has the whole time again', async () => {
  clock.advance(60);
  deadlines[1].stop();
  deadlines[1].start();
  await turns.idle();
  expect(ended).toEqual([0, 2]);
  await pass(59);
  expect(ended).toEqual([0, 2]);
  await pass(1);
  expect(ended).toEqual([0, 2, 1]);
  await pass(1_000);
  expect(ended).toEqual([0, 2, 1]);
});

test('02 §18: one with an accepted call while it waits for its turn has the whole time again', async () => {
  clock.advance(60);
  deadlines[1].renew();
  await turns.idle();
  await pass(59);
  expect(ended).toEqual([0, 2]);
  await pass(1);
  expect(ended).toEqual([0, 2, 1]);
});

test('02 §18: one with a request that begins while it waits for its turn does not expire', async () => {
  clock.advance(60);
  busy.add(1);
  await turns.idle();
  expect(ended).toEqual([0, 2]);
  busy.clear();
  await pass(60);
  expect(ended).toEqual([0, 2, 1]);
});
