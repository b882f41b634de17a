/** A clock that may be wrong deletes nothing. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { auth } from '../../src/auth/index.ts';
import type { Job, RelayContext } from '../../src/context.ts';
import { ClockGuard } from '../../src/jobs/clock-guard.ts';
import { JobRunner } from '../../src/jobs/runner.ts';
import { defaultLimits } from '../../src/limits.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { clockMigration, putClockMark, readClockMark } from '../../src/storage/clock-mark.ts';
import { openSqlite, type SqliteStorage } from '../../src/storage/sqlite/storage.ts';
import { ManualClock } from '../support/clock.ts';
import { temporaryFolder } from '../support/folder.ts';
import { patience } from '../support/patience.ts';

const day = 86_400;
let folder: ReturnType<typeof temporaryFolder>;
let storage: SqliteStorage;
let clock: ManualClock;
let lines: string[];
let context: RelayContext;

beforeEach(async () => {
  folder = temporaryFolder();
  storage = openSqlite(folder.path);
  await storage.write('relay', (tx) => tx.run(clockMigration.statements[0] as string));
  clock = new ManualClock();
  lines = [];
  const write = (level: string) => (_: unknown, text: string | undefined) =>
    void lines.push(`${level} ${text ?? _}`);
  const log = { info: write('info'), warn: write('warn'), error: write('error') };
  context = { storage, clock, log, metrics: new Metrics(), limits: defaultLimits } as never;
});
afterEach(async () => {
  await storage[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** Another run of the relay. */
async function started(): Promise<ClockGuard> {
  const guard = new ClockGuard(context);
  await guard.start();
  return guard;
}
const runJob = (guard: ClockGuard) =>
  guard.job.run(context, new AbortController().signal, () => ({ [Symbol.dispose]() {} }));
/** Lets jobs run that came due. */
const settle = async () => {
  for (let turn = 0; turn < 50; turn += 1) await new Promise((next) => setImmediate(next));
};
const isPaused = () => context.metrics.value('deleting_paused') === 1;

test('up to a day ahead of the last mark, jobs delete; further, not for 24 hours', async () => {
  await started();
  clock.advance(day);
  expect(await (await started()).secondsToWait()).toBe(0);
  expect(lines).toEqual([]);
  clock.advance(day + 1);
  const guard = await started();
  expect(await guard.secondsToWait()).toBe(60);
  expect(isPaused()).toBe(true);
  clock.advance(day - 1);
  await runJob(guard);
  expect(await guard.secondsToWait()).toBe(60);
  expect(lines).toEqual([
    expect.stringMatching(/^error deleting paused, .* posthouse clock accept/),
  ]);
  clock.advance(1);
  expect(await guard.secondsToWait()).toBe(0);
  expect(isPaused()).toBe(false);
  expect(lines[1]).toBe('info deleting resumed');
});

test('the pause goes on after a restart, and ends when the clock is set right', async () => {
  await started();
  clock.advance(365 * day);
  expect(await (await started()).secondsToWait()).toBe(60);
  clock.advance(day - 60);
  const guard = await started();
  expect(await guard.secondsToWait()).toBe(60);
  clock.advance(-366 * day + 120);
  expect(await guard.secondsToWait()).toBe(0);
  expect((await storage.read(readClockMark))?.seenAt).toBe(clock.now());
});

test('an end that a clock even further ahead has set does not count', async () => {
  await started();
  clock.advance(1_000 * day);
  await started();
  clock.advance(-500 * day);
  const guard = await started();
  expect((await storage.read(readClockMark))?.pausedUntil).toBe(clock.now() + day);
  clock.advance(day);
  expect(await guard.secondsToWait()).toBe(0);
});

test('a clock that jumps while the relay runs pauses at once', async () => {
  const guard = await started();
  clock.advance(2 * day);
  expect(await guard.secondsToWait()).toBe(60);
});

test('what the operator accepts counts within a minute', async () => {
  await started();
  clock.advance(2 * day);
  const guard = await started();
  expect(await guard.secondsToWait()).toBe(60);
  await storage.write('relay', (tx) => putClockMark(tx, { seenAt: clock.now() }));
  expect(await guard.secondsToWait()).toBe(0);
});

test('a clock earlier than the last mark is logged, and the mark stays', async () => {
  await started();
  const seenAt = clock.now();
  clock.advance(-100);
  await started();
  expect(lines).toEqual(['warn the clock is earlier than at the last mark: check it']);
  expect((await storage.read(readClockMark))?.seenAt).toBe(seenAt);
});

test('the runner runs jobs that delete when the guard lets them, and all others', async () => {
  const runs: string[] = [];
  const job = (name: string, deletes?: true): Job => ({
    name,
    ...(deletes && { deletes }),
    run: async () => {
      runs.push(name);
      return undefined;
    },
  });
  await started();
  clock.advance(2 * day);
  const guard = await started();
  await using runner = new JobRunner('alone');
  runner.start(context, [job('deleting', true), job('other')], guard);
  await settle();
  expect(runs).toEqual(['other']);
  await storage.write('relay', (tx) => putClockMark(tx, { seenAt: clock.now() }));
  clock.advance(60);
  await vi.waitFor(() => expect(runs).toEqual(['other', 'other', 'deleting']), patience);
});

test('a job may do its other work in the pause, from where the last such run began', async () => {
  const runs: (number | string | undefined)[] = [];
  const job: Job = {
    name: 'both',
    deletes: true,
    run: async () => void runs.push('deleted'),
    runPaused: async (_context, _signal, since) => {
      runs.push(since);
      return clock.now() + 30;
    },
  } as Job;
  await started();
  clock.advance(2 * day);
  const guard = await started();
  await using runner = new JobRunner('alone');
  const first = clock.now();
  runner.start(context, [job], guard);
  await settle();
  clock.advance(30);
  await settle();
  expect(runs).toEqual([undefined, first]);
  await storage.write('relay', (tx) => putClockMark(tx, { seenAt: clock.now() }));
  clock.advance(30);
  await settle();
  expect(runs).toEqual([undefined, first, 'deleted']);
});

test('expired challenges and sessions are removed also while nothing else is: they are made again', () => {
  const [job] = auth.jobs;
  expect([job?.name, job?.deletes]).toEqual(['auth.expiry', undefined]);
});
