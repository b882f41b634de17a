/** 02 §18: what a peer's small pieces cost depends on their bytes, not on how many they are. */
import { Readable } from 'node:stream';
import { beforeEach, describe, expect, test } from 'vitest';
import { GatheredChunks } from '../../src/transport/gathered-chunks.ts';

const turn = () => new Promise<void>((go) => setImmediate(go));

let asked: number;
let stream: Readable;
let chunks: GatheredChunks;
let pieces: string[];
const push = (text: string) => stream.push(Buffer.from(text));
/** Pushes the same character several times, each alone; returns whether more may follow each. */
const pushEach = (count: number, text = 'x') => Array.from({ length: count }, () => push(text));
/** Takes what arrives. */
const flow = () => stream.on('data', (piece) => pieces.push(String(piece)));
beforeEach(async () => {
  asked = 0;
  pieces = [];
  stream = new Readable({
    read: () => {
      asked += 1;
    },
  });
  chunks = new GatheredChunks(stream);
});

describe('a stream that flows', () => {
  beforeEach(async () => {
    flow();
    await turn();
  });

  test('passes on 16 small chunks of a turn as they are, and the others in one piece at its end', async () => {
    expect(pushEach(1_000)).toEqual([...Array(16).fill(true), ...Array(984).fill(false)]);
    expect(pieces).toEqual(Array(16).fill('x'));
    await turn();
    expect(pieces.slice(16)).toEqual(['x'.repeat(984)]);
    expect(pushEach(1)).toEqual([true]);
    expect(pieces).toHaveLength(18);
  });

  test('asks for more when what was gathered was passed on', async () => {
    const before = asked;
    pushEach(17);
    await Promise.resolve();
    await new Promise<void>((go) => process.nextTick(go));
    expect(asked).toBe(before);
    await turn();
    expect(asked).toBeGreaterThan(before);
  });

  test('has the same order and bytes, whatever the sizes of its chunks', async () => {
    let sent = '';
    for (let index = 0; index < 200; index += 1) {
      const text = String(index).padEnd(index % 7 === 0 ? 1_024 : (index * 37) % 1_023, '.');
      sent += text;
      push(text);
      if (index % 50 === 0) await turn();
    }
    await turn();
    expect(pieces.join('')).toBe(sent);
  });

  test('passes on chunks of 1,024 bytes as they are, after what was gathered', () => {
    pushEach(18);
    push('y'.repeat(1_023));
    push('z'.repeat(1_024));
    expect(pieces.slice(16)).toEqual([`xx${'y'.repeat(1_023)}`, 'z'.repeat(1_024)]);
  });

  test('passes on what was gathered before its end', async () => {
    pushEach(20);
    const ended = new Promise((resolve) => stream.once('end', resolve));
    stream.push(null);
    await ended;
    expect(pieces.join('')).toBe('x'.repeat(20));
  });

  test('passes on nothing once it is destroyed', async () => {
    pushEach(20);
    stream.destroy();
    await turn();
    expect(pieces).toHaveLength(16);
  });
});

describe('a stream that is paused', () => {
  test('is asked for no more at once, and has one piece for the chunks of a turn', async () => {
    expect(pushEach(10_000)).toEqual(Array(10_000).fill(false));
    await turn();
    expect([stream.readableLength, asked]).toEqual([10_000, 0]);
    flow();
    await turn();
    expect(pieces).toEqual(['x'.repeat(10_000)]);
    expect(asked).toBeGreaterThanOrEqual(1);
  });

  test('is asked for no more after it was paused, until it is resumed', async () => {
    flow();
    await turn();
    stream.pause();
    const before = asked;
    expect(push('x'.repeat(2_000))).toBe(false);
    await turn();
    expect(asked).toBe(before);
    stream.resume();
    await turn();
    expect([pieces.length, asked]).toEqual([1, before + 1]);
  });

  test('tells how many bytes wait, those that waited before too, and when they are taken', async () => {
    const held: number[] = [];
    push('ab');
    const reading = chunks.readBy({ waiting: (bytes) => held.push(bytes) });
    push('cde');
    chunks.take(3);
    expect(held).toEqual([2, 3, -3]);
    const next: number[] = [];
    chunks.readBy({ waiting: (bytes) => next.push(bytes) });
    expect([held, next]).toEqual([[2, 3, -3, -2], [2]]);
    chunks.take(9);
    reading[Symbol.dispose]();
    push('f');
    expect([held, next]).toEqual([
      [2, 3, -3, -2],
      [2, -2, 1],
    ]);
  });

  test('tells nothing to a reader that has ended', () => {
    const held: number[] = [];
    chunks.readBy({ waiting: (bytes) => held.push(bytes) })[Symbol.dispose]();
    push('a');
    expect(held).toEqual([]);
  });
});

test('chunks are counted as they arrive', async () => {
  expect(GatheredChunks.of(stream)).toBe(chunks);
  pushEach(40);
  push('y'.repeat(5_000));
  expect([chunks.takeCount(), chunks.takeCount()]).toEqual([41, 0]);
});

test('a reader is told of 256 chunks while they arrive', () => {
  const told: number[] = [];
  chunks.readBy({ waiting: () => {}, many: () => told.push(chunks.takeCount()) });
  pushEach(600);
  expect(told).toEqual([256, 256]);
});

test('a stream that flows and was stopped before is read on', async () => {
  const stopped = new Readable({ read: () => {} }).on('data', () => {});
  await turn();
  stopped._read = () => {
    asked += 1;
  };
  new GatheredChunks(stopped);
  expect(asked).toBe(1);
});
