import { readFileSync } from 'node:fs';

/** The tables of the protocol's chapters, as rows of cells without the backticks. */

/** Rows of all tables below a heading, up to the next heading; `text` is the heading's beginning. */
export function tableRows(file: string, heading: string): string[][] {
  const url = new URL(`../../../../docs/protocol/${file}`, import.meta.url);
  const lines = readFileSync(url, 'utf8').split('\n');
  const start = lines.findIndex((line) => line.startsWith(heading));
  if (start < 0) throw new Error(`${file} has no heading ${heading}`);
  const length = lines.slice(start + 1).findIndex((line) => /^#+ /.test(line));
  return lines
    .slice(start + 1, length < 0 ? undefined : start + 1 + length)
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.replaceAll('`', '').trim()),
    );
}

/** Rows whose first cell is a dotted name. */
export function namedRows(file: string, heading: string): string[][] {
  return tableRows(file, heading).filter(([name = '']) => /^[a-z]+(\.[a-z]+)+$/.test(name));
}
