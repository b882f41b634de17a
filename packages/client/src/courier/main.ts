#!/usr/bin/env node
/** The user's command `courier`: a thin shell over `runCourier`. */
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { UsageError } from './exit.ts';
import { runCourier } from './program.ts';

/** Asks at the terminal; what is typed is not shown. */
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
    // Ctrl+C at the question is an interruption like any other.
    stopping.abort();
    throw error;
  } finally {
    terminal.close();
    process.stderr.write('\n');
  }
}

const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => stopping.abort());
}
// Whoever read the output has gone, as `head` does: there is nothing left to say.
process.stdout.on('error', () => stopping.abort());
process.exitCode = await runCourier(process.argv.slice(2), {
  env: process.env,
  write: (out) => process.stdout.write(out),
  writeError: (out) => process.stderr.write(out),
  readInput: () => text(process.stdin),
  askSecret,
  signal: stopping.signal,
});
