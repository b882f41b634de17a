/** Units that are gathered before they become a piece of a text. */
const unitsOfPiece = 1_024;
/** Units of a run from which it is a piece of its own. */
const longRun = 256;
/** What is gathered; of one text, until it pauses or ends. */
const gathered = new Uint16Array(unitsOfPiece);

/**
 * The text of a string with escapes, made of few pieces: with one for each escape, V8 would keep 32 bytes
 * for each of them.
 */
export class UnescapedText {
  #text = '';
  #count = 0;

  /** Adds a part of another text as it is. */
  addRun(text: string, start: number, end: number): void {
    if (end - start >= longRun) {
      this.pause();
      this.#text += text.slice(start, end);
      return;
    }
    for (let at = start; at < end; at += 1) this.addUnit(text.charCodeAt(at));
  }

  /** Adds a UTF-16 unit. */
  addUnit(unit: number): void {
    if (this.#count === unitsOfPiece) this.pause();
    gathered[this.#count] = unit;
    this.#count += 1;
  }

  /** Keeps what was gathered: another text may be read now. */
  pause(): void {
    if (this.#count === 0) return;
    const units = gathered.subarray(0, this.#count) as unknown as number[];
    this.#text += String.fromCharCode.apply(undefined, units);
    this.#count = 0;
  }

  /** Returns the text. */
  end(): string {
    this.pause();
    return this.#text;
  }
}
