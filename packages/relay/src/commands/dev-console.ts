/** The lines that `posthouse dev` reads from standard input, and what each does. */
import type { DevNetwork } from '../dev/dev-network.ts';
import type { DevRelay } from '../dev/dev-relay.ts';
import { instant, oneLine } from './terminal-output.ts';

export const consoleHelp = `Lines on standard input:
  clock +3600     moves the clocks of all relays by so many seconds; clock -60 moves them back
  clock b +3600   moves the clock of one relay
  stop b          stops a relay
  start b         starts it again, with the same keys, data and port
  help            prints these lines`;

/** Where a console prints. */
export interface ConsoleOutput {
  /** A relay was started. */
  ready(relay: DevRelay): void;
  /** One sentence or several lines for a person. */
  note(text: string): void;
}

/**
 * Carries out one line. A line that is wrong, or that fails, is answered with a sentence and changes
 * nothing.
 */
export async function runLine(
  network: DevNetwork,
  line: string,
  output: ConsoleOutput,
): Promise<void> {
  const [verb = '', ...words] = line.trim().split(/\s+/);
  try {
    if (verb === '') return;
    if (verb === 'help' && words.length === 0) output.note(consoleHelp);
    else if (verb === 'clock' && words.length === 1) moveClocks(network.relays, words[0], output);
    else if (verb === 'clock' && words.length === 2) {
      moveClocks([network.relay(words[0] as string)], words[1], output);
    } else if ((verb === 'stop' || verb === 'start') && words.length === 1) {
      await turn(verb, network.relay(words[0] as string), output);
    } else {
      throw new Error(`there is no line ${JSON.stringify(line.trim())}: enter help for all lines`);
    }
  } catch (error) {
    output.note(oneLine(error instanceof Error ? error.message : String(error)));
  }
}

function moveClocks(
  relays: readonly DevRelay[],
  amount: string | undefined,
  output: ConsoleOutput,
): void {
  if (!/^[+-][0-9]{1,10}$/.test(amount ?? '')) {
    throw new Error(`clock: expected seconds as +3600 or -60, found ${JSON.stringify(amount)}`);
  }
  for (const relay of relays) relay.moveClock(Number(amount));
  for (const { name, clock } of relays) {
    output.note(`clock ${name} ${instant(clock.now())}`);
  }
}

async function turn(
  verb: 'stop' | 'start',
  relay: DevRelay,
  { ready, note }: ConsoleOutput,
): Promise<void> {
  const isRunning = verb === 'start';
  if (relay.isRunning === isRunning) {
    note(`relay ${relay.name} ${isRunning ? 'runs' : 'is stopped'} already`);
    return;
  }
  await relay[verb]();
  if (isRunning) ready(relay);
  else note(`relay ${relay.name} is stopped`);
}

/** Characters of a line at the most: memory stays bounded if no line end comes. */
const longestLine = 1_024;

/**
 * Divides input into lines without their ends. A line that is too long is cut to {@link longestLine}
 * characters; the last one may have no end.
 */
export async function* inputLines(chunks: AsyncIterable<string>): AsyncGenerator<string> {
  let line = '';
  for await (const chunk of chunks) {
    const parts = chunk.split('\n');
    for (const [index, part] of parts.entries()) {
      line += part.slice(0, longestLine - line.length);
      if (index === parts.length - 1) break;
      yield line;
      line = '';
    }
  }
  if (line !== '') yield line;
}
