/** How the command writes: lines for people, or one JSON value a line for programs. */
import { terminalJson, terminalLine, terminalText } from '@posthouse/protocol/terminal';

export {
  terminalColumns as columns,
  terminalJson as jsonLine,
  terminalText as printable,
} from '@posthouse/protocol/terminal';

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
      const shown = isJson ? [terminalJson(value)] : lines().map(terminalLine);
      for (const line of shown) streams.write(`${line}\n`);
    },
    note(line) {
      if (!isJson) streams.writeError(`${terminalLine(line)}\n`);
    },
  };
}

/** Text of somebody else where there is room for one line: a name, a reason. */
export function oneLine(text: string): string {
  return terminalText(text).replace(/\n */g, ' ');
}

/** Text of somebody else below a number: no further line of it passes for an entry of its own. */
export function multiLine(text: string): string {
  return terminalText(text).replaceAll('\n    ', '\n     | ');
}

/** Text of somebody else in quotes, which the text itself cannot close. */
export function quoted(text: string): string {
  return `"${oneLine(text).replaceAll('"', '\\"')}"`;
}

/** Unix seconds as a local date and time. */
export function localTime(seconds: number): string {
  const date = new Date(seconds * 1_000);
  if (Number.isNaN(date.getTime())) return String(seconds);
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** Of a timeline that no command reads to its end. */
export const moreToRead = 'there is more to read than one command reads; the next one goes on';
