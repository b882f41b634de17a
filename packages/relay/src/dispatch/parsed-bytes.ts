import type { Steps } from './slices.ts';

/** Bytes that one mark of JSON stands for in memory, rounded up from what was measured. */
const bytesOfMark: Readonly<Record<string, number>> = { '[': 160, '{': 80, ',': 32, ':': 48 };

const bytesOfByte = new Uint8Array(256);
for (const [mark, bytes] of Object.entries(bytesOfMark)) bytesOfByte[mark.charCodeAt(0)] = bytes;

/**
 * Returns the bytes that a JSON text takes once it is read, beyond its own: about as many again for
 * its strings, and so many for each value. Marks in strings count too; texts of the protocol have few.
 */
export function parsedBytes(text: Uint8Array): number {
  const { length } = text;
  let sum = length;
  for (let index = 0; index < length; index += 1) {
    sum += bytesOfByte[text[index] as number] as number;
  }
  return sum;
}

/** Bytes that are counted in one step: less than half a millisecond. */
const bytesOfStep = 131_072;

/** Returns the {@link parsedBytes} of a large text, in steps. */
export function* parsedBytesInSteps(text: Uint8Array): Steps<number> {
  let sum = 0;
  for (let start = 0; start < text.length; start += bytesOfStep) {
    sum += parsedBytes(text.subarray(start, start + bytesOfStep));
    yield;
  }
  return sum;
}
