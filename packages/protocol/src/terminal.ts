/** Untrusted texts made safe to print to a terminal, and columns. */

/** Characters that command a terminal or turn the direction of writing; line feeds aside. */
const commanding =
  /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/**
 * Makes a line safe to print: characters that could command the terminal become spaces.
 *
 * @example
 * terminalLine('one\u001b[2Jtwo'); // 'one [2Jtwo'
 */
export function terminalLine(line: string): string {
  return line.replace(commanding, ' ');
}

/**
 * Makes untrusted text safe to print to a terminal: control characters, which could move the cursor
 * or forge lines, become spaces; further lines are indented.
 *
 * @example
 * terminalText('one\r\ntwo\u001b[2J'); // 'one\n    two [2J'
 */
export function terminalText(text: string): string {
  return terminalLine(text.replace(/\r\n?|[\u2028\u2029]/g, '\n')).replaceAll('\n', '\n    ');
}

/**
 * Formats a value as one line of JSON, with control characters escaped.
 *
 * @example
 * terminalJson({ name: 'a\u009bb' }); // '{"name":"a\\u009bb"}'
 */
export function terminalJson(value: object): string {
  return JSON.stringify(value).replace(
    commanding,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/**
 * Formats rows as columns of equal width.
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
