/** What the demo prints, and its checks. */
import { isDeepStrictEqual } from 'node:util';

export const bold = (line: string) => (process.stdout.isTTY ? `\u001b[1m${line}\u001b[0m` : line);
export const print = (line = '') => process.stdout.write(`${line}\n`);

export function heading(title: string): void {
  print();
  print(bold(title));
}

/** Prints `ok` if the value is the expected one; otherwise throws, which ends the demo. */
export function expect(found: unknown, expected: unknown, what: string): void {
  if (!isDeepStrictEqual(found, expected)) {
    throw new Error(
      `${what}\n  expected ${JSON.stringify(expected)}\n  found    ${JSON.stringify(found)}`,
    );
  }
  print(`  ok: ${what}`);
}
