/** What several commands print: results, remarks, times, and texts of strangers. */
import { terminalLine } from '@posthouse/protocol/terminal';
import type { OutputConfiguration } from 'commander';

/** Prints lines of the result. None of them commands the terminal, whatever texts are in it. */
export function print(lines: readonly string[]): void {
  for (const line of lines) process.stdout.write(`${terminalLine(line)}\n`);
}

/** Prints a remark or an error to standard error, as {@link print} does. */
export function note(line: string): void {
  process.stderr.write(`${terminalLine(line)}\n`);
}

/** How commander prints errors of arguments, which repeat what was given: as {@link note} does. */
export const commandOutput: OutputConfiguration = {
  outputError: (text, write) => write(terminalLine(text)),
};

/** Seconds from 1970 that a date may be away. */
const lastDate = 8_640_000_000_000;

/** Formats Unix seconds as in logs. */
export function instant(seconds: number): string {
  if (Math.abs(seconds) > lastDate) return `second ${seconds}`;
  return new Date(seconds * 1_000).toISOString().replace('.000', '');
}

/** Formats a stranger's text as one line. */
export function oneLine(text: string): string {
  return terminalLine(text.replaceAll('\n', ' '));
}

/** Limit of characters of a text in a table. */
const shortText = 60;

/** As {@link oneLine}, cut to {@link shortText} characters. */
export function shortened(text: string): string {
  const characters = [...oneLine(text)];
  if (characters.length <= shortText) return characters.join('');
  return `${characters.slice(0, shortText - 1).join('')}…`;
}
