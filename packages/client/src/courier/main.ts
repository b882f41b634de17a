#!/usr/bin/env node
/** The command `courier`: passes the process to `runCourier`. */
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { UsageError } from './exit.ts';
import { type LineInput, pipedLines, terminalLines } from './line-input.ts';
import { streamDrained } from './output.ts';
import { runCourier } from './program.ts';

/** Asks at the terminal without echo. */
async function askSecret(question: string): Promise<string> {
  if (!process.stdin.isTTY) {
    throw new UsageError('a password is needed; set COURIER_WALLET_PASSWORD');
  }
  process.stderr.write(question);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input: process.stdin, output: silent, terminal: true });
  try {
    return await terminal.question('');
  } catch (error) {
    // Ctrl+C at the question interrupts the command like anywhere else.
    stopping.abort();
    throw error;
  } finally {
    terminal.close();
    process.stderr.write('\n');
  }
}

const streams = {
  write: (out: string) => process.stdout.write(out),
  writeError: (out: string) => process.stderr.write(out),
  drained: () => streamDrained(process.stdout, stopping.signal),
};

/** Talks to a person if input and output are a terminal. */
function openLines(signal: AbortSignal): LineInput {
  const { stdin: input, stdout: output } = process;
  if (!input.isTTY || !output.isTTY) return pipedLines(input, streams, signal);
  return terminalLines({ input, output }, { signal, interrupt: () => stopping.abort() });
}

const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => stopping.abort());
}
// The reader of the output has closed it, as `head` does: stop.
process.stdout.on('error', () => stopping.abort());
process.exitCode = await runCourier(process.argv.slice(2), {
  env: process.env,
  ...streams,
  readInput: () => text(process.stdin),
  openLines,
  askSecret,
  signal: stopping.signal,
});
