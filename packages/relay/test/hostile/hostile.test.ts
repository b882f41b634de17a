/** Hostile input, little of it; `npm run test:hostile` takes more of the same and prints figures. */
import { expect, test } from 'vitest';
import { seed } from '../support/chance.ts';
import { CallCampaign } from './call-campaign.ts';
import { heapInUse } from './memory.ts';
import { compareTexts, type TextVerdict } from './parse-texts.ts';

const { TEST_HOSTILE_TEXTS, TEST_HOSTILE_CALLS } = process.env;
const texts = Number(TEST_HOSTILE_TEXTS ?? 5_000);
const calls = Number(TEST_HOSTILE_CALLS ?? 300);
/** What the heap may grow by from a tenth of the inputs to their end, in MiB. */
const growth = 24;

function report(line: string): void {
  if (TEST_HOSTILE_TEXTS !== undefined) console.log(line);
}

/** Works through inputs with looks at the heap after a tenth, a half and all of them. */
async function inParts(
  count: number,
  work: (part: { readonly from: number; readonly to: number }) => Promise<void>,
): Promise<number[]> {
  const heap: number[] = [];
  let from = 0;
  for (const share of [0.1, 0.5, 1]) {
    const to = Math.ceil(count * share);
    await work({ from, to });
    heap.push(await heapInUse());
    from = to;
  }
  return heap;
}

test('01 §2.1, §3, §19: texts are read, written and refused as a second parser does', async () => {
  const verdicts = new Map<TextVerdict, number>();
  const started = performance.now();
  const heap = await inParts(texts, async (part) => compareTexts({ seed, ...part }, verdicts));
  const seconds = (performance.now() - started) / 1_000;
  report(`${texts} texts, seed ${seed}, ${seconds.toFixed(1)} s, heap ${heap.join(', ')} MiB`);
  report(JSON.stringify(Object.fromEntries(verdicts)));
  expect([...verdicts.values()].reduce((sum, count) => sum + count, 0)).toBe(texts);
  expect(verdicts.size).toBe(3);
  expect((heap[2] as number) - (heap[0] as number)).toBeLessThan(growth);
});

test('02 §4, §18: changed calls get an error of their method, and refused ones store nothing', async () => {
  await using campaign = new CallCampaign(seed);
  const started = performance.now();
  const heap = await inParts(calls, (part) => campaign.run(part));
  const seconds = (performance.now() - started) / 1_000;
  report(`${calls} calls, seed ${seed}, ${seconds.toFixed(1)} s, heap ${heap.join(', ')} MiB`);
  const codes = new Map<string, number>();
  for (const [method, answers] of [...campaign.answers].sort()) {
    report(`${method} ${JSON.stringify(Object.fromEntries([...answers].sort()))}`);
    for (const [code, count] of answers) codes.set(code, (codes.get(code) ?? 0) + count);
  }
  report(JSON.stringify(Object.fromEntries(codes)));
  expect([...codes.values()].reduce((sum, count) => sum + count, 0)).toBe(calls);
  expect(codes.size).toBeGreaterThan(5);
  expect((heap[2] as number) - (heap[0] as number)).toBeLessThan(growth);
});
