/** Input that is read a line at a time: of a pipe, or of a person at a terminal. */
import { clearScreenDown, createInterface, cursorTo, moveCursor } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { type Streams, streamDrained } from './output.ts';

/** Lines that are read, and streams whose output does not mix with a line that is being typed. */
export interface LineInput extends Streams, Disposable {
  /** Ends with the input. A line over the limit is `undefined`. */
  readonly lines: AsyncIterable<string | undefined>;
}

const lineFeed = 0x0a;

/** Largest line, in bytes. */
export const lineBytes = 1_048_576;

/**
 * Splits a stream into lines, without their ends. A line over the limit is not stored: it is
 * `undefined`, and reading goes on after its end. Ends quietly when the stream is destroyed.
 */
export async function* readLines(
  input: Readable,
  maxBytes = lineBytes,
): AsyncGenerator<string | undefined> {
  let parts: Buffer[] = [];
  let length = 0;
  const add = (part: Buffer) => {
    length += part.length;
    if (length > maxBytes) parts = [];
    else if (part.length > 0) parts.push(part);
  };
  const take = () => {
    const line =
      length > maxBytes ? undefined : Buffer.concat(parts).toString('utf8').replace(/\r$/, '');
    parts = [];
    length = 0;
    return line;
  };
  try {
    for await (const chunk of input) {
      const bytes = Buffer.from(chunk);
      let start = 0;
      for (let end = bytes.indexOf(lineFeed); end !== -1; end = bytes.indexOf(lineFeed, start)) {
        add(bytes.subarray(start, end));
        start = end + 1;
        yield take();
      }
      add(bytes.subarray(start));
    }
  } catch (error) {
    if (!input.destroyed) throw error;
    return;
  }
  if (length > 0) yield take();
}

/** Reads lines of a pipe or file, until the signal aborts. */
export function pipedLines(input: Readable, streams: Streams, signal: AbortSignal): LineInput {
  const end = () => void input.destroy();
  signal.addEventListener('abort', end, { once: true });
  return {
    lines: readLines(input),
    write: (text) => streams.write(text),
    writeError: (text) => streams.writeError(text),
    drained: () => streams.drained(),
    [Symbol.dispose]() {
      signal.removeEventListener('abort', end);
      input.destroy();
    },
  };
}

/** Reads lines of a person. Output is written above the line that is being typed. */
export function terminalLines(
  { input, output }: { readonly input: Readable; readonly output: Writable },
  { signal, interrupt }: { readonly signal: AbortSignal; readonly interrupt: () => void },
): LineInput {
  const terminal = createInterface({ input, output, terminal: true, prompt: '> ', signal });
  // A terminal that is read this way hands over Ctrl+C as a key.
  terminal.on('SIGINT', interrupt);
  let isClosed = false;
  terminal.once('close', () => {
    isClosed = true;
  });
  // A closed terminal, as after Ctrl+D, refuses to prompt; lines typed before that are still read.
  const prompt = (keepsCursor = false) => {
    if (!isClosed) terminal.prompt(keepsCursor);
  };
  // Taken now: lines typed before reading begins wait in it.
  const typed = terminal[Symbol.asyncIterator]();
  const write = (text: string) => {
    moveCursor(output, 0, -terminal.getCursorPos().rows);
    cursorTo(output, 0);
    clearScreenDown(output);
    output.write(text);
    prompt(true);
  };
  async function* lines() {
    prompt();
    for await (const line of typed) {
      yield line;
      prompt();
    }
  }
  return {
    lines: lines(),
    write,
    writeError: write,
    drained: () => streamDrained(output, signal),
    [Symbol.dispose]: () => terminal.close(),
  };
}
