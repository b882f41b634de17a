/** Signals that come faster than their work is done. */
import { expect, test } from 'vitest';
import { coalesced } from '../../src/commands/coalesced.ts';

test('any number of calls during a run are one more run, after it', async () => {
  const runs: PromiseWithResolvers<void>[] = [];
  const call = coalesced(() => {
    const run = Promise.withResolvers<void>();
    runs.push(run);
    return run.promise;
  });
  const end = async (run: number) => {
    runs[run]?.resolve();
    for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
  };
  for (let calls = 0; calls < 1_000; calls += 1) call();
  expect(runs).toHaveLength(1);
  await end(0);
  expect(runs).toHaveLength(2);
  call();
  await end(1);
  expect(runs).toHaveLength(3);
  await end(2);
  expect(runs).toHaveLength(3);
  call();
  expect(runs).toHaveLength(4);
});
