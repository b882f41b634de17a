/** `posthouse web`: arguments and output; operations/served-web/ compares. */
import { readFileSync } from 'node:fs';
import { terminalJson } from '@posthouse/protocol/terminal';
import { Command, InvalidArgumentError } from 'commander';
import { type Comparison, compareServed } from '../operations/served-web/compare.ts';
import { builtFolder } from '../web/index.ts';
import { note, oneLine, print } from './terminal-output.ts';

const help = `
Reads the page at the address, files.json, config.json and every file of the messenger that this
installation carries, and compares contents (SHA-256), types and the headers that guard the page. It
follows no redirect, and needs neither a configuration nor a relay.

It shows what the server answers this program now. A server can answer a person's browser differently:
that all is equal proves no more than that.

Exit status: 0 all is equal, 1 something differs, 2 wrong arguments, 4 something could not be read.

Examples:
  posthouse web verify https://relay.example/app/
  posthouse web verify https://relay.example/app/ --folder packages/web/dist --json`;

/** Seconds that the comparison may take at most. */
const maxTimeout = 3_600;

interface Flags {
  readonly folder?: string;
  readonly ca?: string;
  readonly timeout: number;
  readonly json?: boolean;
}

const exits = (command: Command) =>
  command.exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2));

/** Completes `posthouse web`. */
export function configure(command: Command): void {
  exits(command)
    .enablePositionalOptions()
    .addHelpText('after', help)
    .action(() => command.help({ error: true }))
    .addCommand(
      exits(new Command('verify'))
        .description('compare the messenger at an address with the one of this installation')
        .argument('<address>', 'the address of the page, as in https://relay.example/app/', urlOf)
        .option('--folder <folder>', 'another build to compare with, which has a files.json')
        .option('--ca <file>', "authority of the server's certificate, PEM")
        .option('--timeout <seconds>', 'how long all may take', timeoutOf, 60)
        .option('--json', 'print one JSON object')
        .addHelpText('after', help)
        .action(verify),
    );
}

const loopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

function urlOf(text: string): URL {
  if (!URL.canParse(text)) throw new InvalidArgumentError('Expected an address.');
  const url = new URL(text);
  const { protocol, hostname, pathname, search, hash, username, password } = url;
  if (protocol !== 'https:' && !(protocol === 'http:' && loopback.test(hostname))) {
    throw new InvalidArgumentError('Expected https (http for this machine alone).');
  }
  if (!pathname.endsWith('/') || search + hash + username + password !== '') {
    throw new InvalidArgumentError(
      'Expected the address of a folder, which ends in "/", without a query or a password.',
    );
  }
  return url;
}

function timeoutOf(text: string): number {
  const seconds = Number(text);
  if (seconds > 0 && seconds <= maxTimeout) return seconds;
  throw new InvalidArgumentError(`Expected seconds, at most ${maxTimeout}.`);
}

async function verify(url: URL, { ca, timeout, json, ...flags }: Flags): Promise<void> {
  const folder = flags.folder ?? builtFolder('messenger');
  if (folder === undefined) {
    return wrongArguments(
      'no messenger was built here: run npm run build:web, or name one with --folder',
    );
  }
  let comparison: Comparison;
  try {
    const authority = ca === undefined ? undefined : readFileSync(ca, 'utf8');
    comparison = await compareServed({ url, folder, authority, timeout });
  } catch (error) {
    // What a server answers is in the comparison: this is about the folder, or the authority.
    return wrongArguments((error as Error).message);
  }
  if (json === true) print([terminalJson({ url: url.href, ...comparison })]);
  else show(url, comparison);
  if (comparison.differences.length > 0) process.exitCode = 1;
  else if (comparison.unread.length > 0) process.exitCode = 4;
}

function wrongArguments(words: string): void {
  note(oneLine(words));
  process.exitCode = 2;
}

function show(url: URL, { version, files, differences, unread }: Comparison): void {
  const problems = [...differences, ...unread].map(oneLine);
  if (problems.length > 0) print(problems);
  if (unread.length === 0 && differences.length === 0) {
    print([
      `${url.href} answers this program with the messenger ${oneLine(version)}: ${files} files`,
    ]);
  }
}
