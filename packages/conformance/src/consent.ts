/** The question before a run on a relay in use: accounts of the kit stay there. */
import { createInterface } from 'node:readline/promises';
import type { Check } from './check.ts';
import type { Target } from './target.ts';

/** The registry of networks for development: such a network has no chain. */
const noChain = /^neo:0:0x0{40}$/;
const loopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

/** Returns whether a relay is for development: it has no chain, or runs on this machine. */
export function isForDevelopment({
  network,
  baseUrl,
}: {
  readonly network: { readonly context: string };
  readonly baseUrl: string;
}): boolean {
  return noChain.test(network.context) || loopback.test(new URL(baseUrl).hostname);
}

/** Says what a run leaves at a relay. */
export function noticeOf({ baseUrl }: Pick<Target, 'baseUrl'>, checks: readonly Check[]): string {
  const runs = checks.reduce((sum, { transports }) => sum + transports.length, 0);
  return (
    `The ${runs} runs of checks make accounts at ${baseUrl}, one to twenty each. The protocol has no ` +
    'way to delete an account: they stay, with what they published, until the operator removes them. ' +
    'Groups and channels are closed at the end of their check, and messages go when their retention ends. ' +
    'The kit waits as long as the relay asks it to.'
  );
}

/**
 * Asks on the terminal whether a run may begin.
 *
 * @throws Error that names the option `--yes` if there is no terminal, or the answer is no
 */
export async function requireConsent(
  notice: string,
  { input, output }: { readonly input: NodeJS.ReadStream; readonly output: NodeJS.WriteStream },
): Promise<void> {
  if (!input.isTTY) throw new Error(`${notice}\nNothing was done: add --yes to go on.`);
  output.write(`${notice}\n`);
  const terminal = createInterface({ input, output });
  try {
    const answer = await terminal.question('Go on? [y/N] ');
    if (!/^y(?:es)?$/i.test(answer.trim())) throw new Error('Nothing was done.');
  } finally {
    terminal.close();
  }
}
