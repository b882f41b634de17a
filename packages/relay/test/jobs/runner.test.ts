import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Job, RelayContext } from '../../src/context.ts';
import { JobRunner } from '../../src/jobs/runner.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { ManualClock } from '../support/clock.ts';

let clock: ManualClock;
let runner: JobRunner;
let runs: number[];
let answers: (number | undefined | Error)[];
let context: RelayContext;

const job: Job = {
  name: 'test.job',
  async run({ clock: time }) {
    runs.push(time.now() - start);
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return answer;
  },
};
const start = 1_750_000_000;

/** Runs everything that is ready. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

beforeEach(() => {
  clock = new ManualClock(start);
  runner = new JobRunner('alone');
  runs = [];
  answers = [];
  context = {
    clock,
    log: pino({ level: 'silent' }),
    metrics: new Metrics(),
  } as Partial<RelayContext> as RelayContext;
});
afterEach(() => runner[Symbol.asyncDispose]());

async function advance(seconds: number): Promise<void> {
  clock.advance(seconds);
  await settle();
}

test('a job that only reads is tried again soon, however often it failed', async () => {
  answers = Array.from({ length: 20 }, () => new Error('out of reach'));
  runner.start(context, [{ ...job, retryAtMost: 2 }]);
  await settle();
  for (let second = 0; second < 40; second += 1) await advance(1);
  expect(runs.slice(0, 5)).toEqual([0, 1, 3, 5, 7]);
  expect(runs[20]).toBe(39);
});

test('a job runs at the start and at its deadlines', async () => {
  answers = [start + 10, start + 10, start + 30];
  runner.start(context, [job]);
  await settle();
  await advance(9);
  expect(runs).toEqual([0]);
  await advance(1);
  // A deadline that has passed means a run at once.
  expect(runs).toEqual([0, 10, 10]);
  await advance(20);
  expect(runs).toEqual([0, 10, 10, 30]);
});

test('without a deadline, or with a far one, a job runs every hour', async () => {
  answers = [undefined, start + 1_000_000];
  runner.start(context, [job]);
  await settle();
  await advance(59);
  expect(runs).toEqual([0]);
  await advance(1);
  await advance(60);
  expect(runs).toEqual([0, 60, 120]);
});

test('next to other processes a job runs every 30 seconds: the process that was woken may be gone', async () => {
  const shared = new JobRunner('shared');
  answers = [undefined, start + 1_000_000];
  shared.start(context, [job]);
  await settle();
  await advance(30);
  await advance(30);
  expect(runs).toEqual([0, 30, 60]);
  await shared[Symbol.asyncDispose]();
});

test('any number of wakes before a run cause one run', async () => {
  runner.start(context, [job]);
  await settle();
  for (let count = 0; count < 5; count += 1) runner.wake('test.job');
  await settle();
  expect(runs).toEqual([0, 0]);
  runner.wake('unknown job');
});

test('a wake during a run is not lost', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let count = 0;
  const slow: Job = {
    name: 'test.slow',
    async run() {
      count += 1;
      await promise;
      return undefined;
    },
  };
  runner.start(context, [slow]);
  await settle();
  runner.wake('test.slow');
  await settle();
  expect(count).toBe(1);
  resolve();
  await settle();
  expect(count).toBe(2);
});

test('a failure is counted, and the job is retried with growing pauses', async () => {
  const fault = new Error('fault');
  answers = [fault, fault, fault, fault, fault];
  runner.start(context, [job]);
  await settle();
  for (const seconds of [1, 5, 30, 300, 300]) await advance(seconds);
  expect(runs).toEqual([0, 1, 6, 36, 336, 636]);
  expect(context.metrics.value('jobs_failed', { job: 'test.job' })).toBe(5);
});

test('one job does not delay another', async () => {
  const stuck: Job = { name: 'test.stuck', run: () => new Promise(() => {}) };
  runner.start(context, [stuck, job]);
  await settle();
  expect(runs).toEqual([0]);
  // The runner cannot stop while a run never ends.
  runner = new JobRunner('alone');
});

test('stopping waits for the run under way and begins no other', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const seen: boolean[] = [];
  const slow: Job = {
    name: 'test.slow',
    async run(_context, signal) {
      seen.push(signal.aborted);
      await promise;
      seen.push(signal.aborted);
      return start;
    },
  };
  runner.start(context, [slow, job]);
  await settle();
  const stopped = runner[Symbol.asyncDispose]();
  resolve();
  await stopped;
  runner.wake('test.slow');
  await advance(7_200);
  expect(seen).toEqual([false, true]);
  expect(runs).toEqual([0]);
});

test('two jobs of one name are refused', () => {
  expect(() => runner.start(context, [job, job])).toThrow('two jobs are called test.job');
});

test('all jobs can be woken at once', async () => {
  runner.start(context, [job, { ...job, name: 'test.other' }]);
  await settle();
  expect(runs).toEqual([0, 0]);
  runner.wakeAll();
  await settle();
  expect(runs).toEqual([0, 0, 0, 0]);
});

test('a job learns of a wake while its run waits', async () => {
  const heard: string[] = [];
  const stop = Promise.withResolvers<void>();
  const waiting: Job = {
    name: 'test.waiting',
    async run(_context, _signal, onWake) {
      heard.push('run');
      using _wakes = onWake(() => heard.push('wake'));
      await stop.promise;
      return undefined;
    },
  };
  runner.start(context, [waiting]);
  await settle();
  runner.wake(waiting.name);
  expect(heard).toEqual(['run', 'wake']);
  stop.resolve();
  await settle();
  // The wake came too late for the first run to be sure of its work.
  expect(heard).toEqual(['run', 'wake', 'run']);
});
