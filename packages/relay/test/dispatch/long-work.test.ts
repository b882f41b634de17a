import { expect, test } from 'vitest';
import { LongWork } from '../../src/dispatch/long-work.ts';
import { Slices, type Steps } from '../../src/dispatch/slices.ts';

test('two texts are read at once, in rotation of the owners, though one is broken', async () => {
  const reads = new LongWork(new Slices());
  const log: string[] = [];
  function* reading(name: string): Steps<void> {
    log.push(`${name} begins`);
    yield;
    log.push(`${name} ends`);
    if (name === 'ann1') throw new Error('broken');
  }
  const names = ['ann1', 'ann2', 'ann3', 'ann4', 'bob1'];
  const all = names.map((name) => reads.read(name.slice(0, 3), () => reading(name)));
  await Promise.allSettled(all);
  const begun = log.filter((entry) => entry.endsWith('begins')).map((entry) => entry.slice(0, 4));
  expect(begun).toEqual(['ann1', 'ann2', 'ann3', 'bob1', 'ann4']);
  const most = log.indexOf('ann1 ends');
  expect(log.slice(0, most)).toEqual(['ann1 begins', 'ann2 begins']);
});
