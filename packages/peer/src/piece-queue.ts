/** Pieces below this are put together while they wait, so that each costs little but its bytes. */
const smallPiece = 1_024;

/** Bytes that wait to be read, in the pieces in which they came. */
export class PieceQueue {
  readonly #pieces: Uint8Array[] = [];
  /** Where the last piece lies if small ones are put together in it, and how much of it is used. */
  #gathered: { readonly buffer: Buffer; used: number } | undefined;

  get isEmpty(): boolean {
    return this.#pieces.length === 0;
  }

  /** Adds a piece. A small one must not keep the large buffer alive that it lies in. */
  push(piece: Uint8Array): void {
    const last = this.#pieces.at(-1);
    if (last === undefined || last.length + piece.length > smallPiece) {
      this.#gathered = undefined;
      this.#pieces.push(piece.length * 2 < piece.buffer.byteLength ? new Uint8Array(piece) : piece);
      return;
    }
    if (this.#gathered === undefined) {
      this.#gathered = { buffer: Buffer.allocUnsafeSlow(smallPiece), used: last.length };
      this.#gathered.buffer.set(last);
    }
    const { buffer, used } = this.#gathered;
    buffer.set(piece, used);
    this.#gathered.used += piece.length;
    this.#pieces[this.#pieces.length - 1] = buffer.subarray(0, this.#gathered.used);
  }

  shift(): Uint8Array | undefined {
    return this.#pieces.shift();
  }

  clear(): void {
    this.#pieces.length = 0;
  }
}
