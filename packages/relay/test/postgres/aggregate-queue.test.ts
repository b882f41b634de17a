import { expect, test } from 'vitest';
import { AggregateQueue } from '../../src/storage/aggregate-queue.ts';

/** A work that says when it runs and goes on when it may. */
function work(log: string[], name: string) {
  const started = Promise.withResolvers<void>();
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const run = async () => {
    log.push(name);
    started.resolve();
    return await promise;
  };
  return { run, started: started.promise, end: () => resolve(name), fail: reject };
}

/** Lets everything run that does not wait for anybody. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

test('works of one key run one after another, in the order they came', async () => {
  const queue = new AggregateQueue();
  const log: string[] = [];
  const [a, b, c] = [work(log, 'a'), work(log, 'b'), work(log, 'c')];
  const results = [a, b, c].map(({ run }) => queue.run(['x'], run));
  await settle();
  expect(log).toEqual(['a']);
  c.end();
  b.end();
  await settle();
  expect(log).toEqual(['a']);
  a.end();
  expect(await Promise.all(results)).toEqual(['a', 'b', 'c']);
  expect(log).toEqual(['a', 'b', 'c']);
});

test('works of other keys do not wait', async () => {
  const queue = new AggregateQueue();
  const log: string[] = [];
  const [a, b] = [work(log, 'a'), work(log, 'b')];
  const first = queue.run(['x'], a.run);
  b.end();
  expect(await queue.run(['y'], b.run)).toBe('b');
  a.end();
  await first;
});

test('a work of several keys waits for all of them and is waited for at each', async () => {
  const queue = new AggregateQueue();
  const log: string[] = [];
  const names = ['x', 'y', 'xy', 'x2', 'y2'] as const;
  const [x, y, both, x2, y2] = names.map((name) => work(log, name)) as [
    ReturnType<typeof work>,
    ReturnType<typeof work>,
    ReturnType<typeof work>,
    ReturnType<typeof work>,
    ReturnType<typeof work>,
  ];
  const results = [
    queue.run(['x'], x.run),
    queue.run(['y'], y.run),
    queue.run(['y', 'x'], both.run),
    queue.run(['x'], x2.run),
    queue.run(['y'], y2.run),
  ];
  x.end();
  await settle();
  expect(log).toEqual(['x', 'y']);
  y.end();
  await both.started;
  await settle();
  expect(log).toEqual(['x', 'y', 'xy']);
  for (const { end } of [both, x2, y2]) end();
  await Promise.all(results);
});

test('opposite orders, rings and repeated keys do not wait for ever', async () => {
  const queue = new AggregateQueue();
  const keys = [['x', 'y'], ['y', 'x'], ['y', 'z'], ['z', 'x'], ['x', 'x'], []];
  const results = keys.map((some, index) => queue.run(some, async () => index));
  expect(await Promise.all(results)).toEqual([0, 1, 2, 3, 4, 5]);
});

test('a work that fails, or throws at once, holds up nobody and fails alone', async () => {
  const queue = new AggregateQueue();
  const log: string[] = [];
  const a = work(log, 'a');
  const failing = queue.run(['x'], a.run);
  const throwing = queue.run(['x'], () => {
    throw new Error('at once');
  });
  const last = queue.run(['x'], async () => 'last');
  a.fail(new Error('later'));
  await expect(failing).rejects.toThrow('later');
  await expect(throwing).rejects.toThrow('at once');
  expect(await last).toBe('last');
});

test('a work that comes while another one ends is not forgotten', async () => {
  const queue = new AggregateQueue();
  let inside = 0;
  let most = 0;
  const one = () =>
    queue.run(['x'], async () => {
      inside += 1;
      most = Math.max(most, inside);
      await settle();
      inside -= 1;
    });
  await Promise.all([one().then(one), one().then(() => Promise.all([one(), one()])), one()]);
  expect(most).toBe(1);
});
