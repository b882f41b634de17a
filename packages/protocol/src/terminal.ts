/** Texts of other people, made harmless for whoever reads them at a terminal. */

/** Characters that command a terminal or turn the direction of writing; line feeds aside. */
const commanding =
  /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** A line that may hold anything, with what could command the terminal as spaces. */
export function terminalLine(line: string): string {
  return line.replace(commanding, ' ');
}

/**
 * Text of somebody else, safe to write to a terminal: control characters, which could move the
 * cursor or forge lines, become spaces; a further line is indented.
 *
 * @example
 * terminalText('one\r\ntwo\u001b[2J'); // 'one\n    two [2J'
 */
export function terminalText(text: string): string {
  return terminalLine(text.replace(/\r\n?|[\u2028\u2029]/g, '\n')).replaceAll('\n', '\n    ');
}

/** A value as one line of JSON, with nothing in it that a terminal would obey. */
export function terminalJson(value: object): string {
  return JSON.stringify(value).replace(
    commanding,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/**
 * Rows as columns of equal width.
 *
 * @example
 * terminalColumns([['a', 'b'], ['long', 'c']]); // ['a     b', 'long  c']
 */
export function terminalColumns(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [index, cell] of row.entries()) {
      widths[index] = Math.max(widths[index] ?? 0, cell.length);
    }
  }
  return rows.map((row) =>
    row
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
