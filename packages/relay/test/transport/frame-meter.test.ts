import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FrameMeter } from '../../src/transport/frame-meter.ts';

/** RFC 6455 §5.2: frames of a client, however their bytes are cut into chunks. */

/** The header and payload of a masked frame. */
function frame(opcode: number, length: number, isLast = true): Buffer {
  const first = (isLast ? 0x80 : 0) | opcode;
  const head =
    length < 126
      ? [first, 0x80 | length]
      : length < 65_536
        ? [first, 0x80 | 126, length >> 8, length & 0xff]
        : [
            first,
            0x80 | 127,
            0,
            0,
            0,
            0,
            0,
            (length >> 16) & 0xff,
            (length >> 8) & 0xff,
            length & 0xff,
          ];
  return Buffer.concat([Buffer.from(head), Buffer.alloc(4 + length, 1)]);
}

const [text, continuation, ping] = [1, 0, 9];

test.each([
  ['a small message', [frame(text, 10)], 64],
  ['an empty message', [frame(text, 0)], 64],
  ['a message of 126 bytes', [frame(text, 126)], 134],
  ['a message of 64 KiB', [frame(text, 65_536)], 65_550],
  ['an empty ping', [frame(ping, 0)], 64],
  [
    'fragments with a ping between them',
    [frame(text, 1, false), frame(ping, 3), frame(continuation, 1)],
    192,
  ],
])('%s costs at least 64 bytes for each frame and is finished', (_, frames, charge) => {
  const bytes = Buffer.concat(frames);
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: bytes.length - 1 }), { maxLength: 8 }),
      (cuts) => {
        const meter = new FrameMeter(64);
        const edges = [0, ...new Set(cuts.sort((a, b) => a - b)), bytes.length];
        const readings = edges
          .slice(1)
          .map((end, index) => meter.read(bytes.subarray(edges[index], end)));
        expect(readings.reduce((sum, reading) => sum + reading.charge, 0)).toBe(charge);
        const begins = edges.slice(0, -1);
        const found = begins.flatMap((begin, index) =>
          (readings[index]?.ends ?? []).map((end) => begin + end),
        );
        let offset = 0;
        expect(found).toEqual(frames.map(({ length }) => (offset += length)));
        expect(readings.map(({ isUnfinished }) => isUnfinished)).toEqual(
          readings.map((_, index) => {
            const end = edges[index + 1] as number;
            return !ends(frames).includes(end);
          }),
        );
      },
    ),
    { numRuns: 50 },
  );
});

/** Offsets at which neither a frame nor a message is open. */
function ends(frames: readonly Buffer[]): number[] {
  let offset = 0;
  let isOpen = false;
  const found: number[] = [];
  for (const bytes of frames) {
    offset += bytes.length;
    const first = bytes[0] as number;
    if ((first & 0x08) === 0) isOpen = (first & 0x80) === 0;
    if (!isOpen) found.push(offset);
  }
  return found;
}

test('frames are counted since the last complete message', () => {
  const meter = new FrameMeter(64);
  const bytes = [frame(text, 5), frame(text, 1, false), frame(continuation, 1, false)];
  expect(meter.read(Buffer.concat(bytes))).toMatchObject({
    ...{ frames: 2, hasEnded: true, isUnfinished: true },
  });
});
