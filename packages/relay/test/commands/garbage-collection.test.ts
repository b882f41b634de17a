/** 0047: how far the young generation of a relay grows under load, and what a buffer keeps in memory. */
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

const mebibyte = 1_048_576;
const source = new URL('../../src/commands/garbage-collection.ts', import.meta.url).href;

/** Runs a process that keeps much of what it makes; returns the largest size of its young generation. */
function largestYoungGeneration(isBounded: boolean): number {
  const program = `
    import { getHeapSpaceStatistics } from 'node:v8';
    import { boundYoungGeneration } from ${JSON.stringify(source)};
    if (${isBounded}) boundYoungGeneration();
    const kept = [];
    let [made, largest] = [0, 0];
    function work() {
      for (let count = 0; count < 2_000; count += 1) {
        kept[made % 60_000] = { made, text: 'x' + made, list: [made, made] };
        made += 1;
      }
      const young = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space');
      largest = Math.max(largest, young.space_size);
      if (made < 6_000_000) setImmediate(work);
      else console.log(largest);
    }
    work();`;
  // By itself V8 chooses the largest size by the memory of the machine.
  return outputOf(program, '--max-semi-space-size=32');
}

/** Returns the number that a program writes. */
function outputOf(program: string, ...flags: string[]): number {
  const args = [...flags, '--input-type=module', '--eval', program];
  const env = { ...process.env, NODE_OPTIONS: '' };
  return Number(execFileSync(process.execPath, args, { encoding: 'utf8', env }));
}

/** Returns the bytes that each of 500 buffers keeps, between which others are made and dropped. */
function bytesOfWaitingBuffer(isBounded: boolean): number {
  return outputOf(
    `
    import { boundBufferPools } from ${JSON.stringify(source)};
    if (${isBounded}) boundBufferPools();
    const answer = 'x'.repeat(250);
    const waiting = [];
    for (let made = 0; made < 150_000; made += 1) {
      const buffer = Buffer.from(answer);
      if (made % 300 === 0) waiting.push(buffer);
    }
    for (let round = 0; round < 3; round += 1) {
      gc();
      await new Promise((resolve) => setImmediate(resolve));
    }
    console.log(Math.round(process.memoryUsage().arrayBuffers / waiting.length));`,
    '--expose-gc',
  );
}

test('0047: under load the young generation stays below 32 MiB, and grows further without its bound', () => {
  expect(largestYoungGeneration(true)).toBeLessThan(32 * mebibyte);
  expect(largestYoungGeneration(false)).toBeGreaterThan(32 * mebibyte);
});

test('0047: a small answer that waits keeps 4 KiB in memory at the most, not a pool of 64 KiB', () => {
  expect(bytesOfWaitingBuffer(true)).toBeLessThan(4_500);
  expect(bytesOfWaitingBuffer(false)).toBeGreaterThan(60_000);
});
