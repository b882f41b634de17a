import { expect, test } from 'vitest';
import { Slices, type Steps } from '../../src/dispatch/slices.ts';

function* counting(name: string, steps: number, log: string[]): Steps<string> {
  for (let step = 1; step < steps; step += 1) {
    log.push(`${name}${step}`);
    yield;
  }
  log.push(`${name}${steps}`);
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

test('one step runs in each turn of the event loop, of all works in turn', async () => {
  const log: string[] = [];
  const slices = new Slices();
  const stop = turns(log);
  const works = [slices.run(counting('a', 3, log)), slices.run(counting('b', 2, log))];
  expect(await Promise.all(works)).toEqual(['a', 'b']);
  stop();
  expect(log.filter((entry) => entry !== 'turn')).toEqual(['a1', 'b1', 'a2', 'b2', 'a3']);
  const between = log.join(' ').split(/[ab][0-9]/);
  for (const turnsBetween of between.slice(1, -1)) expect(turnsBetween).toContain('turn');
});

test('an error ends its work and no other', async () => {
  const slices = new Slices();
  // biome-ignore lint/correctness/useYield: it fails in its first step.
  function* failing(): Steps<string> {
    throw new Error('broken');
  }
  const log: string[] = [];
  const works = [slices.run(failing()), slices.run(counting('a', 2, log))];
  expect(await Promise.allSettled(works)).toMatchObject([
    { reason: new Error('broken') },
    { value: 'a' },
  ]);
});
