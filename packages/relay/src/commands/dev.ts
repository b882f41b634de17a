/** `posthouse dev`: runs several relays of one network in this process, for development. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { DevNetwork, maxDevRelays } from '../dev/dev-network.ts';
import type { DevRelay } from '../dev/dev-relay.ts';
import { createLog, type LogLevel } from '../observability/log.ts';
import { type ConsoleOutput, consoleHelp, inputLines, runLine } from './dev-console.ts';
import { readyLine } from './ready-line.ts';
import { note, print } from './terminal-output.ts';

interface DevFlags {
  readonly relays: number;
  readonly data?: string;
  readonly service?: string;
  readonly network?: string;
  readonly log: LogLevel;
}

const help = `
The relays are called a, b, c and so on. For each one that is ready, one line goes to standard output:
  ready <https base url> <wss url> <relay id> <network context> <name>
Everything else goes to standard error: first the paths of the registry and of the certificate
authority that clients need, then the log.

With --data, everything is stored in that folder: started again on it, the relays have the same
keys, data and ports. Without it, all is removed at the end. Settings of the environment and of
configuration files have no effect.

${consoleHelp}

The command runs until SIGTERM or SIGINT; the end of standard input does not end it.

Exit status: 0 stopped, 1 failed, 2 wrong arguments.

Examples:
  posthouse dev
  posthouse dev --relays 2 --data .posthouse-network`;

/** Completes `posthouse dev`. */
export function configure(command: Command): void {
  command
    .option('--relays <number>', `how many, 1 to ${maxDevRelays}`, relaysOf, 3)
    .option('--data <folder>', 'folder of the network; by default a temporary one')
    .option('--service <word>', 'service word of the network')
    .option('--network <context>', 'network context neo:<magic>:<registry>')
    .addOption(
      new Option('--log <level>', 'how much is logged')
        .choices(['silent', 'error', 'warn', 'info', 'debug'])
        .default('warn'),
    )
    .addHelpText('after', help)
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
    .action(dev);
}

function relaysOf(text: string): number {
  const number = Number(text);
  if (/^[0-9]{1,2}$/.test(text) && number >= 1 && number <= maxDevRelays) return number;
  throw new InvalidArgumentError(`Expected 1 to ${maxDevRelays}.`);
}

/** Runs until SIGTERM or SIGINT; the process then ends by itself. */
async function dev(flags: DevFlags): Promise<void> {
  const stopping = new AbortController();
  // Ctrl+C in a terminal may arrive twice, once passed on by npm: the second must not end the
  // process before it has removed its folder.
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, () => stopping.abort());
  await using parts = new AsyncDisposableStack();
  const folder = flags.data ?? (await temporaryFolder(parts));
  const { relays, service, network: context } = flags;
  const log = createLog(flags.log);
  const config = (name: string) => ({ blobs: { folder: join(folder, name, 'attachments') } });
  const network = parts.use(
    await DevNetwork.start({ folder, relays, service, network: context, config, log }),
  );
  for (const relay of network.relays) output.ready(relay);
  output.note(
    [
      `registry ${network.registryFile}`,
      `certificate authority ${network.authorityFile}`,
      'A client of another kind needs, in its environment:',
      `NODE_EXTRA_CA_CERTS=${network.authorityFile}`,
      'Enter help for what can be changed.',
    ].join('\n'),
  );
  await runConsole(network, stopping.signal);
}

const output: ConsoleOutput = {
  ready: ({ server, name }: DevRelay) => {
    print([`${readyLine(server)} ${name}`]);
  },
  note,
};

async function temporaryFolder(parts: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'posthouse-dev-'));
  parts.defer(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Carries out lines of standard input, one after another, until the signal; also after its end. */
async function runConsole(network: DevNetwork, signal: AbortSignal): Promise<void> {
  const aborted = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
  process.stdin.setEncoding('utf8');
  // A terminal that went away ends the input, not the relays.
  process.stdin.on('error', () => {});
  const reading = (async () => {
    try {
      for await (const line of inputLines(process.stdin as AsyncIterable<string>)) {
        await runLine(network, line, output);
      }
    } catch (error) {
      if (!signal.aborted) output.note(`standard input: ${(error as Error).message}`);
    }
  })();
  await aborted;
  process.stdin.destroy();
  await reading;
}
