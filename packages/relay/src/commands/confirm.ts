import { createInterface } from 'node:readline/promises';
import { note } from './terminal-output.ts';

/**
 * Asks on standard error; end of input means no.
 *
 * @param lines what is at stake
 * @param question ends in a question mark
 */
export async function isConfirmed(lines: readonly string[], question: string): Promise<boolean> {
  for (const line of lines) note(line);
  using asked = createInterface({ input: process.stdin, output: process.stderr });
  const ended = new Promise<string>((resolve) => asked.once('close', () => resolve('')));
  const answer = await Promise.race([asked.question(`${question} [y/N] `), ended]);
  return /^y(es)?$/i.test(answer.trim());
}
