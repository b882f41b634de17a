/** How the command writes: lines for people, or one JSON value a line for programs. */

export interface Output {
  readonly isJson: boolean;
  /** Writes a result: the value as JSON, or its lines. */
  result(value: object, lines: () => readonly string[]): void;
  /** A remark for people that is not part of the result. */
  note(line: string): void;
}

export interface Streams {
  write(text: string): void;
  writeError(text: string): void;
}

export function createOutput(streams: Streams, isJson: boolean): Output {
  return {
    isJson,
    result(value, lines) {
      const shown = isJson ? [jsonLine(value)] : lines().map(harmless);
      for (const line of shown) streams.write(`${line}\n`);
    },
    note(line) {
      if (!isJson) streams.writeError(`${harmless(line)}\n`);
    },
  };
}

/** Characters that command a terminal or turn the direction of writing; line feeds aside. */
const commanding =
  /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** A line that may hold anything, with what could command the terminal as spaces. */
function harmless(line: string): string {
  return line.replace(commanding, ' ');
}

/**
 * Text of somebody else, safe to write to a terminal: control characters, which could move the
 * cursor or forge lines, become spaces; a further line is indented.
 */
export function printable(text: string): string {
  return harmless(text.replace(/\r\n?|[\u2028\u2029]/g, '\n')).replaceAll('\n', '\n    ');
}

/** A value as one line of JSON, with nothing in it that a terminal would obey. */
export function jsonLine(value: object): string {
  return JSON.stringify(value).replace(
    commanding,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Unix seconds as a local date and time. */
export function when(seconds: number): string {
  const date = new Date(seconds * 1_000);
  if (Number.isNaN(date.getTime())) return String(seconds);
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** Rows as columns of equal width. */
export function columns(rows: readonly (readonly string[])[]): string[] {
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
