/** Bytes of a block, at most; of the first block, at least. */
const largestBlock = 65_536;
const smallestBlock = 1_024;

/**
 * Collects a body from its chunks. Small ones are copied into blocks, so that the memory it takes
 * depends on the length of the body and not on the number of chunks.
 */
export class BodyBuffer {
  /** Each is full but the last. */
  #blocks: Buffer[] = [];
  /** Bytes free at the end of the last block. */
  #free = 0;
  #length = 0;

  /** Bytes of the body so far. */
  get length(): number {
    return this.#length;
  }

  /** Appends a chunk; returns the bytes of memory that it takes in addition. */
  add(chunk: Buffer): number {
    this.#length += chunk.length;
    const copied = Math.min(this.#free, chunk.length);
    this.#append(chunk.subarray(0, copied));
    const rest = chunk.subarray(copied);
    if (rest.length === 0) return 0;
    if (rest.length >= largestBlock / 2) {
      this.#blocks.push(rest);
      return rest.length;
    }
    const size = Math.min(largestBlock, Math.max(smallestBlock, rest.length, this.#length));
    this.#blocks.push(Buffer.alloc(size));
    this.#free = size;
    this.#append(rest);
    return size;
  }

  /** Returns the whole body. */
  whole(): Buffer {
    return Buffer.concat(this.#blocks, this.#length);
  }

  /** Frees the memory. */
  clear(): void {
    this.#blocks = [];
    this.#free = 0;
  }

  #append(bytes: Buffer): void {
    const block = this.#blocks.at(-1);
    if (block === undefined || bytes.length === 0) return;
    bytes.copy(block, block.length - this.#free);
    this.#free -= bytes.length;
  }
}
