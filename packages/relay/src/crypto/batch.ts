/**
 * Items of work as the bytes that go to the worker thread, and back with the results. The buffer
 * begins with 32-bit words: the number of items, then the length of each text. The heads follow, of
 * one length for all, then the texts. A result replaces the length of its text, and may use the head.
 */

/** One item: parts that have the same length in every item, and one that has not. */
export interface BatchItem {
  readonly head: readonly Uint8Array[];
  readonly text: Uint8Array;
}

/** Writes items, whose heads have so many bytes each, into one buffer. */
export function encodeBatch(headBytes: number, items: readonly BatchItem[]): ArrayBuffer {
  let total = 4 * (items.length + 1) + headBytes * items.length;
  for (const { text } of items) total += text.length;
  const buffer = new ArrayBuffer(total);
  new Uint32Array(buffer, 0, 1)[0] = items.length;
  const { words, heads, bytes } = viewsOf(buffer, headBytes);
  let start = heads + headBytes * items.length;
  let place = heads;
  for (let index = 0; index < items.length; index += 1) {
    const { head, text } = items[index] as BatchItem;
    words[index] = text.length;
    for (const part of head) {
      bytes.set(part, place);
      place += part.length;
    }
    if (place !== heads + headBytes * (index + 1)) throw new RangeError('a head of another length');
    bytes.set(text, start);
    start += text.length;
  }
  return buffer;
}

/** Replaces each item by its result, a number that is not negative; `head` may be written. */
export function workBatch(
  buffer: ArrayBuffer,
  headBytes: number,
  work: (head: Uint8Array, text: Uint8Array) => number,
): void {
  const { words, heads } = viewsOf(buffer, headBytes);
  let start = heads + headBytes * words.length;
  for (const [index, length] of words.entries()) {
    const head = new Uint8Array(buffer, heads + headBytes * index, headBytes);
    words[index] = work(head, new Uint8Array(buffer, start, length));
    start += length;
  }
}

/** Reads the results that {@link workBatch} wrote. */
export function decodeBatch<T>(
  buffer: ArrayBuffer,
  headBytes: number,
  read: (result: number, head: Uint8Array) => T,
): T[] {
  const { words, heads } = viewsOf(buffer, headBytes);
  return Array.from(words, (result, index) =>
    read(result, new Uint8Array(buffer, heads + headBytes * index, headBytes)),
  );
}

function viewsOf(buffer: ArrayBuffer, headBytes: number) {
  const count = new Uint32Array(buffer, 0, 1)[0] as number;
  const heads = 4 * (count + 1);
  if (heads + headBytes * count > buffer.byteLength) throw new RangeError('the batch is cut off');
  return { words: new Uint32Array(buffer, 4, count), heads, bytes: new Uint8Array(buffer) };
}
