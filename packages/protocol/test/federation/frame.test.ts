import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { concatBytes } from '../../src/encoding/bytes.ts';
import { encodeFrame, FrameError, FrameReader } from '../../src/federation/index.ts';
import { encodeVarint, fromHex, hex, limits } from '../../src/index.ts';

/** Frames that a reader gives for chunks, in hex, and the fault that ended it. */
function read(chunks: readonly Uint8Array[], maximum: number = limits.dhtMessageBytes) {
  const reader = new FrameReader(maximum);
  const frames: string[] = [];
  try {
    for (const chunk of chunks) {
      for (const frame of reader.push(chunk)) frames.push(hex(frame));
    }
    reader.end();
    return { frames };
  } catch (error) {
    if (!(error instanceof FrameError)) throw error;
    return { frames, fault: error.fault };
  }
}

/** Cuts bytes at positions, which may repeat: then a chunk is empty. */
function cut(bytes: Uint8Array, positions: readonly number[]): Uint8Array[] {
  const ends = [...positions.map((at) => at % (bytes.length + 1)), bytes.length];
  ends.sort((a, b) => a - b);
  return ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
}

describe('07 §B6: frames', () => {
  test.each([
    ['', []],
    ['00', ['']],
    ['0000', ['', '']],
    ['0107', ['07']],
    ['0107000208090101', ['07', '', '0809', '01']],
  ])('%s holds the frames %j', (text, frames) => {
    expect(read([fromHex(text)])).toEqual({ frames });
    expect(read([...fromHex(text)].map((byte) => Uint8Array.of(byte)))).toEqual({ frames });
  });

  test('frames come back from chunks of any size, in order', () => {
    const frames = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 6 });
    fc.assert(
      fc.property(frames, fc.array(fc.nat(), { maxLength: 12 }), (messages, positions) => {
        const chunks = cut(concatBytes(...messages.map(encodeFrame)), positions);
        expect(read(chunks)).toEqual({ frames: messages.map(hex) });
      }),
      { numRuns: 500 },
    );
  });

  test.each([0, 1, 127, 128, 16_383, 16_384, 1_048_575, 1_048_576])('%i bytes', (length) => {
    const frame = encodeFrame(new Uint8Array(length).fill(7));
    for (const positions of [[], [1], [2], [1, 2, 3, 70_000, 140_000]]) {
      const reader = new FrameReader(limits.dhtMessageBytes);
      const found = cut(frame, positions).flatMap((chunk) => [...reader.push(chunk)]);
      reader.end();
      expect(found.map(({ length }) => length)).toEqual([length]);
      expect(found[0]?.every((byte) => byte === 7)).toBe(true);
    }
  });

  test.each([
    ['8100', 'invalid', 'a prefix that is not in shortest form'],
    ['8000', 'invalid', 'zero in two bytes'],
    ['ffffffffffffffffff01', 'invalid', 'ten bytes'],
    ['808080808080808080', 'invalid', 'a ninth byte that does not end the prefix'],
    ['818040', 'too-large', 'a byte more than the maximum'],
    ['808080808020', 'too-large', '2^40'],
    ['ffffffffffffffff7f', 'too-large', 'the greatest prefix'],
    ['80', 'truncated', 'the end inside a prefix'],
    ['0201', 'truncated', 'the end inside a frame'],
    ['01', 'truncated', 'the end after a prefix'],
  ])('%s is %s: %s', (text, fault) => {
    const bytes = fromHex(text);
    const expected = { frames: ['07'], fault };
    const good = fromHex('0107');
    expect(read([concatBytes(good, bytes)])).toEqual(expected);
    expect(read([good, ...[...bytes].map((byte) => Uint8Array.of(byte))])).toEqual(expected);
  });

  test('the maximum is the one given; a frame of that length passes', () => {
    expect(read([fromHex('020809')], 2)).toEqual({ frames: ['0809'] });
    expect(read([fromHex('03080910')], 2)).toEqual({ frames: [], fault: 'too-large' });
    expect(read([fromHex('00')], 0)).toEqual({ frames: [''] });
  });

  test('a fault is reported before the bytes of the frame arrive, and again from then on', () => {
    const reader = new FrameReader(2);
    const push = (text: string) => [...reader.push(fromHex(text))];
    expect(() => push('03')).toThrow(new FrameError('too-large'));
    expect(() => push('00')).toThrow(new FrameError('too-large'));
    expect(() => push('')).toThrow(new FrameError('too-large'));
    expect(() => reader.end()).toThrow(new FrameError('too-large'));
  });

  test('every prefix of a frame is incomplete', () => {
    const frame = encodeFrame(new Uint8Array(200).fill(1));
    for (let end = 1; end < frame.length; end += 1) {
      expect(read([frame.subarray(0, end)])).toEqual({ frames: [], fault: 'truncated' });
    }
  });

  test('between frames is only where a stream may end', () => {
    const reader = new FrameReader(300);
    const states = [...encodeFrame(new Uint8Array(130)), 0].map((byte) => {
      for (const _ of reader.push(Uint8Array.of(byte)));
      return reader.isBetweenFrames;
    });
    expect(states).toEqual([...Array.from({ length: 131 }, () => false), true, true]);
  });

  test('a frame inside one chunk is a view of it; one of several chunks is not', () => {
    const chunk = fromHex('01070208');
    const reader = new FrameReader(2);
    const [whole] = [...reader.push(chunk)];
    expect(whole?.buffer).toBe(chunk.buffer);
    const next = fromHex('0900');
    const [parts] = [...reader.push(next)];
    chunk.fill(0);
    next.fill(0);
    expect(parts).toEqual(fromHex('0809'));
  });

  test('a prefix alone reserves no memory for its frame', () => {
    const maximum = 2 ** 40;
    const prefix = encodeVarint(BigInt(maximum));
    // If memory of that size were reserved, this would throw.
    expect(read([prefix, new Uint8Array(2_000)], maximum)).toEqual({
      frames: [],
      fault: 'truncated',
    });
  });

  test('any bytes give frames or a fault, by a plain reading of the whole', () => {
    const byte = fc.oneof(fc.constantFrom(0, 1, 2, 0x80, 0x81, 0xff), fc.nat(255));
    fc.assert(
      fc.property(fc.array(byte, { maxLength: 40 }), fc.array(fc.nat()), (bytes, positions) => {
        const input = Uint8Array.from(bytes);
        expect(read(cut(input, positions), 20)).toEqual(plainly(input, 20));
      }),
      { numRuns: 2_000 },
    );
  });
});

/** The rules over a whole input, written plainly. */
function plainly(bytes: Uint8Array, maximum: number): ReturnType<typeof read> {
  const frames: string[] = [];
  let at = 0;
  while (at < bytes.length) {
    const end = bytes.findIndex((byte, index) => index >= at && byte < 0x80);
    const size = (end === -1 ? bytes.length : end + 1) - at;
    if (size > 9 || (end === -1 && size === 9)) return { frames, fault: 'invalid' };
    if (end === -1) return { frames, fault: 'truncated' };
    if (size > 1 && bytes[end] === 0) return { frames, fault: 'invalid' };
    let length = 0n;
    for (let index = end; index >= at; index -= 1) {
      length = length * 128n + BigInt((bytes[index] as number) % 128);
    }
    if (length > BigInt(maximum)) return { frames, fault: 'too-large' };
    const stop = end + 1 + Number(length);
    if (stop > bytes.length) return { frames, fault: 'truncated' };
    frames.push(hex(bytes.subarray(end + 1, stop)));
    at = stop;
  }
  return { frames };
}
