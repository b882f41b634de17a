import { expect, test } from 'vitest';
import { BodyBuffer } from '../../src/transport/body-buffer.ts';

/** 02 §18: the memory of a body depends on its length, not on how it arrives. */

const body = Buffer.from(Array.from({ length: 200_000 }, (_, index) => index % 251));

test.each([1, 7, 1_024, 16_000, 32_768, 65_536, 200_000])('in chunks of %i bytes', (size) => {
  const buffer = new BodyBuffer();
  let memory = 0;
  const outside: number[] = [];
  for (let start = 0; start < body.length; start += size) {
    memory += buffer.add(body.subarray(start, start + size));
    const fits = memory >= buffer.length && memory <= 1_024 + 2 * buffer.length;
    if (!fits) outside.push(start);
  }
  expect(outside).toEqual([]);
  expect(memory).toBeLessThanOrEqual(body.length + 65_536);
  expect(buffer.whole().equals(body)).toBe(true);
});

test('a chunk is not kept, only its bytes', () => {
  const buffer = new BodyBuffer();
  const chunk = Buffer.from('abc');
  expect(buffer.add(chunk)).toBe(1_024);
  chunk.fill('x');
  expect(buffer.add(Buffer.from('def'))).toBe(0);
  expect(buffer.whole().toString()).toBe('abcdef');
  expect(new BodyBuffer().whole().length).toBe(0);
});
