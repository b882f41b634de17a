import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AggregateQueue } from '../../src/storage/postgres/aggregate-queue.ts';

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

test('a work of several keys waits for all of them, and others may have those that are free', async () => {
  const queue = new AggregateQueue();
  const log: string[] = [];
  const start = (name: string, keys: string[]) => {
    const one = work(log, name);
    return { ...one, result: queue.run(keys, one.run) };
  };
  const x = start('x', ['x']);
  const y = start('y', ['y']);
  const both = start('xy', ['y', 'x']);
  const sameLater = start('yx', ['x', 'y']);
  x.end();
  await settle();
  const x2 = start('x2', ['x']);
  await x2.started;
  y.end();
  await settle();
  expect(log).toEqual(['x', 'y', 'x2']);
  x2.end();
  await both.started;
  await settle();
  expect(log).toEqual(['x', 'y', 'x2', 'xy']);
  both.end();
  sameLater.end();
  await Promise.all([both.result, sameLater.result]);
});

test('works in a chain that share nothing do not wait in a row', async () => {
  const queue = new AggregateQueue();
  const log: string[] = [];
  const chain = ['ab', 'bc', 'cd', 'de', 'ef'].map((name) => {
    const one = work(log, name);
    return { ...one, result: queue.run([...name], one.run) };
  });
  await settle();
  expect(log).toEqual(['ab', 'cd', 'ef']);
  for (const { end } of chain) end();
  await Promise.all(chain.map(({ result }) => result));
  expect(log).toHaveLength(5);
});

test('a waiting work is overtaken so often and no more', async () => {
  const queue = new AggregateQueue();
  const log: string[] = [];
  const holder = work(log, 'holder');
  const held = queue.run(['y'], holder.run);
  const both = work(log, 'both');
  const patient = queue.run(['x', 'y'], both.run);
  const passing = Array.from({ length: 40 }, (_, n) =>
    queue.run(['x'], async () => log.push(`${n}`)),
  );
  await settle();
  await settle();
  const before = log.length - 1;
  expect(before).toBeGreaterThan(0);
  expect(before).toBeLessThan(40);
  holder.end();
  await both.started;
  expect(log.indexOf('both')).toBe(before + 1);
  both.end();
  await Promise.all([held, patient, ...passing]);
});

test('in any order of arrival, tasks of one aggregate never overlap and every task runs', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e'), { maxLength: 3 }), {
        maxLength: 80,
      }),
      async (works) => {
        const queue = new AggregateQueue();
        const inside = new Set<string>();
        let clashes = 0;
        const one = async (keys: readonly string[]) => {
          for (const key of new Set(keys)) {
            if (inside.has(key)) clashes += 1;
            inside.add(key);
          }
          await settle();
          for (const key of keys) inside.delete(key);
        };
        await Promise.all(works.map((keys) => queue.run(keys, () => one(keys))));
        expect(clashes).toBe(0);
      },
    ),
    { numRuns: 60 },
  );
});

test('opposite orders, rings and repeated keys do not wait for ever', async () => {
  const queue = new AggregateQueue();
  const keys = [['x', 'y'], ['y', 'x'], ['y', 'z'], ['z', 'x'], ['x', 'x'], []];
  const results = keys.map((some, index) => queue.run(some, async () => index));
  expect(await Promise.all(results)).toEqual([0, 1, 2, 3, 4, 5]);
});

test('a task that rejects or throws fails alone and delays no other', async () => {
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
