import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Slices, type Steps } from '../../src/dispatch/slices.ts';

/** Milliseconds of a step. */
let stepTime: number;

beforeEach(() => {
  let now = 0;
  stepTime = 1;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  spend = () => {
    now += stepTime;
  };
});

afterEach(() => {
  vi.restoreAllMocks();
});

let spend: () => void;

function* counting(name: string, steps: number, log: string[]): Steps<string> {
  for (let step = 1; step < steps; step += 1) {
    log.push(`${name}${step}`);
    spend();
    yield;
  }
  log.push(`${name}${steps}`);
  spend();
  return name;
}

/** Notes every turn of the event loop until it is stopped. */
function turns(log: string[]): () => void {
  let isOver = false;
  const turn = () => {
    if (isOver) return;
    log.push('turn');
    setImmediate(turn);
  };
  setImmediate(turn);
  return () => {
    isOver = true;
  };
}

test('02 §18: a step of a millisecond has a turn of the event loop, of all works in turn', async () => {
  const log: string[] = [];
  const slices = new Slices();
  const stop = turns(log);
  const works = [
    slices.run('ann', counting('a', 3, log)),
    slices.run('ann', counting('b', 2, log)),
  ];
  expect(await Promise.all(works)).toEqual(['a', 'b']);
  stop();
  expect(log.filter((entry) => entry !== 'turn')).toEqual(['a1', 'b1', 'a2', 'b2', 'a3']);
  const between = log.join(' ').split(/[ab][0-9]/);
  for (const turnsBetween of between.slice(1, -1)) expect(turnsBetween).toContain('turn');
});

test('02 §18: short steps share a turn of the event loop, until they took a millisecond', async () => {
  stepTime = 0.4;
  const log: string[] = [];
  const stop = turns(log);
  await new Slices().run('ann', counting('a', 6, log));
  stop();
  const runs = log
    .join(' ')
    .split('turn')
    .map((run) => run.trim());
  expect(runs.filter((run) => run !== '')).toEqual(['a1 a2 a3', 'a4 a5 a6']);
});

test('02 §18: an account with many works delays the steps of another by one each', async () => {
  const log: string[] = [];
  const slices = new Slices();
  const run = (owner: string, name: string) => slices.run(owner, counting(name, 2, log));
  await Promise.all([run('ann', 'a'), run('ann', 'b'), run('ann', 'c'), run('bob', 'd')]);
  expect(log).toEqual(['a1', 'd1', 'b1', 'd2', 'c1', 'a2', 'b2', 'c2']);
});

test('an error ends its work and no other', async () => {
  const slices = new Slices();
  // biome-ignore lint/correctness/useYield: it fails in its first step.
  function* failing(): Steps<string> {
    throw new Error('broken');
  }
  const log: string[] = [];
  const works = [slices.run('ann', failing()), slices.run('ann', counting('a', 2, log))];
  expect(await Promise.allSettled(works)).toMatchObject([
    { reason: new Error('broken') },
    { value: 'a' },
  ]);
});
