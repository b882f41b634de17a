/** Bytes of the first buffer. */
const smallest = 1_024;

/**
 * Gathers a body that arrives in chunks. Each chunk is copied: an array of chunks would take some 200 bytes
 * for each, and a chunk keeps the whole block that the platform received it in, but a relay may send one byte
 * in each.
 */
export class BodyBuffer {
  readonly #maxBytes: number;
  #bytes = new Uint8Array(0);
  #length = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Returns whether the chunk fits: it is not added otherwise. */
  add(chunk: Uint8Array): boolean {
    const length = this.#length + chunk.length;
    if (length > this.#maxBytes) return false;
    if (length > this.#bytes.length) {
      const grown = new Uint8Array(Math.min(length * 2 + smallest, this.#maxBytes));
      grown.set(this.#bytes);
      this.#bytes = grown;
    }
    this.#bytes.set(chunk, this.#length);
    this.#length = length;
    return true;
  }

  /** Returns the body, in a buffer of its length. */
  whole(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(0, this.#length);
  }
}
