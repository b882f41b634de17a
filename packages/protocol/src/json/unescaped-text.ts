/** Units that are gathered before they become a piece of a text. */
const unitsOfPiece = 1_024;
/** Units of a run from which it is a piece of its own. */
const longRun = 256;

/**
 * The text of a string with escapes, made of few pieces: with one for each escape, V8 would keep 32 bytes
 * for each of them.
 */
export class UnescapedText {
  #text = '';
  #units: number[] = [];

  /** Adds a part of another text as it is. */
  addRun(text: string, start: number, end: number): void {
    if (end - start >= longRun) this.#text = this.end() + text.slice(start, end);
    else for (let at = start; at < end; at += 1) this.addUnit(text.charCodeAt(at));
  }

  /** Adds a UTF-16 unit. */
  addUnit(unit: number): void {
    if (this.#units.push(unit) === unitsOfPiece) this.end();
  }

  /** Returns the text so far. */
  end(): string {
    this.#text += String.fromCharCode(...this.#units);
    this.#units = [];
    return this.#text;
  }
}
