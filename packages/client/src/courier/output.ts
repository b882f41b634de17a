/** Output of the command: lines for people, or one JSON value per line for programs. */
import { once } from 'node:events';
import type { Writable } from 'node:stream';
import type { ContentReference } from '@posthouse/protocol';
import { terminalJson, terminalLine, terminalText } from '@posthouse/protocol/terminal';

export {
  terminalColumns as columns,
  terminalJson as jsonLine,
  terminalText as printable,
} from '@posthouse/protocol/terminal';

export interface Output {
  readonly isJson: boolean;
  /** Whether IDs are printed instead of names. */
  readonly showsIds: boolean;
  /** Writes a result: the value as JSON, or its lines. */
  result(value: object, lines: () => readonly string[]): void;
  /** Writes a remark for people that is not part of the result; nothing with `--json`. */
  note(line: string): void;
  /** Waits while the reader of the output is slow: commands that run on write no more until then. */
  drained(): Promise<void>;
}

export interface Streams {
  write(text: string): void;
  writeError(text: string): void;
  /** Waits until the output has room again, or its reader or the command has ended. */
  drained(): Promise<void>;
}

/** Waits until a stream has room again, is closed or fails, or the signal aborts. */
export async function streamDrained(stream: Writable, signal: AbortSignal): Promise<void> {
  if (!stream.writableNeedDrain || signal.aborted) return;
  const ended = new AbortController();
  const options = { signal: AbortSignal.any([signal, ended.signal]) };
  const waits = ['drain', 'close'].map((name) => once(stream, name, options));
  // After an error of the stream or the signal, the next write fails by itself.
  await Promise.race(waits).catch(() => undefined);
  ended.abort();
  await Promise.allSettled(waits);
}

export function createOutput(
  streams: Streams,
  { isJson, showsIds }: Pick<Output, 'isJson' | 'showsIds'>,
): Output {
  return {
    isJson,
    showsIds,
    result(value, lines) {
      const shown = isJson ? [terminalJson(value)] : lines().map(terminalLine);
      for (const line of shown) streams.write(`${line}\n`);
    },
    note(line) {
      if (!isJson) streams.writeError(`${terminalLine(line)}\n`);
    },
    drained: () => streams.drained(),
  };
}

/** Formats another account's text as one line: a name, a reason. */
export function oneLine(text: string): string {
  return terminalText(text).replace(/\n */g, ' ');
}

/** Formats another account's text under an entry's number: no line of it looks like an entry. */
export function multiLine(text: string): string {
  return terminalText(text).replaceAll('\n    ', '\n     | ');
}

/** Formats sealed files: their addresses lead to bytes that only a command can open. */
export function filesText(files: readonly ContentReference[], fetch: string): string {
  if (files.length === 0) return '';
  const kinds = files.map(({ content_type, size }) => `${oneLine(content_type)}, ${size} bytes`);
  return ` [${kinds.join('; ')}: ${fetch}]`;
}

/** Quotes another account's text; quotes inside it are escaped. */
export function quoted(text: string): string {
  return `"${oneLine(text).replaceAll('"', '\\"')}"`;
}

/** Formats Unix seconds as a local date and time. */
export function localTime(seconds: number): string {
  const date = new Date(seconds * 1_000);
  if (Number.isNaN(date.getTime())) return String(seconds);
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** Note for a channel whose restored host has older settings. */
export const lostSettings =
  'its relay was restored from a backup and lost newer settings, which the owner publishes again';

/** Note for a group or channel whose host went back. */
export const wentBack =
  'the host lost entries that it had given, and was read again; entries of that time may be missing';

/** Note for a timeline with more left than one command reads. */
export const moreToRead = 'more is left than one command reads; run a command again to continue';

/** Marks a message that another own device handed over: its signature was not verified here. */
export function copyMark({ handedOverBy }: { readonly handedOverBy?: string }): string {
  return handedOverBy === undefined ? '' : ` (copy of your device ${handedOverBy}, not verified)`;
}
