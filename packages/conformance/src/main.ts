#!/usr/bin/env node
/** `posthouse-conformance`: runs the checks against any relay, by URL. */
import { readFile, writeFile } from 'node:fs/promises';
import { terminalLine } from '@posthouse/protocol/terminal';
import { Command, CommanderError, InvalidArgumentError } from 'commander';
import manifest from '../package.json' with { type: 'json' };
import type { Check } from './check.ts';
import { checks } from './checks/index.ts';
import { isForDevelopment, noticeOf, requireConsent } from './consent.ts';
import { TestContext } from './fixtures/test-context.ts';
import { htmlReport } from './html-report.ts';
import { checkLines, methodLines, summaryLines } from './report.ts';
import { restartBy } from './restart.ts';
import { printRun } from './run.ts';
import { type Finding, selectChecks } from './runner.ts';
import { RelaySeats } from './seat/relay-seats.ts';
import { loadTarget, type Target } from './target.ts';

interface Options {
  readonly relay?: string;
  readonly registry?: string;
  readonly ca?: string;
  readonly service: string;
  readonly invite?: string;
  readonly listen?: string;
  readonly certificate?: string;
  readonly key?: string;
  readonly registryRefresh?: number;
  readonly republication?: number;
  readonly restart?: string;
  readonly only?: string[];
  readonly beginWith?: string;
  readonly json?: boolean;
  readonly report?: string;
  readonly yes?: boolean;
  readonly list?: boolean;
  readonly byMethod?: boolean;
}

const command = new Command('posthouse-conformance')
  .description('Checks a relay of the protocol from outside, over HTTPS and WSS.')
  .version(manifest.version, '--version', 'print the version')
  .option('--relay <url>', 'HTTPS base address of the relay')
  .option('--registry <file>', 'static registry file that names the relay')
  .option('--ca <file>', 'certificate authority of the relay, in PEM')
  .option('--invite <code>', 'invite code with many uses, if the relay takes accounts by invite')
  .option('--listen <host>', 'IP address or name of this machine for the relay: be a relay too')
  .option('--certificate <file>', 'with --listen: certificate for that host, in PEM')
  .option('--key <file>', 'with --listen: private key of the certificate, in PEM')
  .option(
    '--registry-refresh <seconds>',
    'with --listen: how often the relay reads its registry',
    secondsOf,
  )
  .option(
    '--republication <seconds>',
    'with --listen: how often the relay publishes the routes of its accounts again',
    secondsOf,
  )
  .option('--restart <command>', 'shell command that restarts the relay, for the checks of that')
  .option('--service <word>', 'service word', 'svc')
  .option('--only <prefix...>', 'only checks whose id starts with a prefix')
  .option('--begin-with <id>', 'leave out the checks before this one: go on with a stopped run')
  .option('--json', 'findings and progress as one JSON object per line')
  .option('--report <file>', 'also write the result to a file, as HTML')
  .option('--yes', 'go on although accounts stay at the relay; not needed for development')
  .option('--list', 'list the checks and exit; needs no relay')
  .option('--by-method', 'with --list: number of checks and runs of each method')
  .addHelpText(
    'after',
    '\nExit status: 0 all passed, 1 a check failed, 2 the run could not be made or was stopped.',
  )
  .exitOverride()
  // Errors repeat arguments, which may be anything.
  .configureOutput({ outputError: (text, write) => write(terminalLine(text)) })
  .action(async (options: Options) => {
    const selected = selectChecks(checks, options.only, options.beginWith);
    if (options.list === true) {
      const lines = options.byMethod === true ? methodLines(selected) : checkLines(selected);
      for (const line of lines) console.log(line);
      return;
    }
    if (options.byMethod === true) throw new Error('--by-method needs --list');
    checkSeatOptions(options);
    const client = await targetOf(options);
    const isInUse = !isForDevelopment(client);
    if (isInUse) await consent(noticeOf(client, selected), options);
    await probe(client);
    await using seats = await seatsOf(client, options);
    const { restart } = options;
    const target = {
      ...client,
      cleansUp: isInUse,
      ...(seats && { seats }),
      ...(restart && { restart: () => restartBy(restart, client) }),
    };
    process.exitCode = await report(target, selected, options);
  });

/** Says what a run leaves at the relay, and asks if `--yes` does not answer. */
async function consent(notice: string, { yes }: Options): Promise<void> {
  if (yes === true) console.error(notice);
  else await requireConsent(notice, { input: process.stdin, output: process.stderr });
}

function secondsOf(text: string): number {
  const seconds = Number(text);
  if (Number.isInteger(seconds) && seconds > 0) return seconds;
  throw new InvalidArgumentError('a number of seconds is expected.');
}

/** @throws Error if an option of a relay's seat lacks another one */
function checkSeatOptions({ listen, certificate, key, ...options }: Options): void {
  if (listen === undefined) {
    const needing = [certificate, key, options.registryRefresh, options.republication];
    if (needing.every((value) => value === undefined)) return;
    throw new Error('--certificate, --key, --registry-refresh and --republication need --listen');
  }
  if (certificate !== undefined && key !== undefined) return;
  throw new Error('--listen needs --certificate and --key: relays fetch descriptors over HTTPS');
}

/** Takes the seat of a relay; `undefined` if the options do not ask for it. */
async function seatsOf(
  { network }: Target,
  { registry, listen, certificate, key, registryRefresh, republication }: Options,
): Promise<RelaySeats | undefined> {
  if (!listen || !certificate || !key || !registry) return undefined;
  return await RelaySeats.open({
    ...{ network, registry, host: listen },
    certificate: await readFile(certificate, 'utf8'),
    key: await readFile(key, 'utf8'),
    ...(registryRefresh === undefined ? {} : { registryRefresh }),
    ...(republication === undefined ? {} : { republication }),
  });
}

async function targetOf({ relay, registry, ca, service, invite }: Options): Promise<Target> {
  if (relay === undefined || registry === undefined) {
    throw new Error('--relay and --registry are missing: they name the relay to check');
  }
  const loaded = await loadTarget({ relay, registry, word: service, ...(ca && { ca }) });
  return { ...loaded, ...(invite && { invite }) };
}

/** @throws Error with the cause and a hint if the relay cannot be used */
async function probe(target: Target): Promise<void> {
  try {
    // A relay that cannot be reached would fail in every check: report it once.
    await using _ = await TestContext.open(target, 'https');
  } catch (cause) {
    const text = textOf(cause);
    const hint = /certificate/.test(text) ? '; pass its certificate authority with --ca FILE' : '';
    throw new Error(`${target.baseUrl} cannot be used: ${text}${hint}`, { cause });
  }
}

/** Runs the checks and prints the results; returns the exit status. */
async function report(
  target: Target,
  selected: readonly Check[],
  { only, beginWith, json = false, report }: Options,
): Promise<number> {
  const begun = Date.now();
  const interrupted = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    // The relays of the check under way still leave the registry; a second signal ends at once.
    process.once(name, () => interrupted.abort(new Error(`stopped by ${name}`)));
  }
  const { findings, stoppedBefore } = await printRun(target, selected, {
    ...{ json, out: process.stdout, errors: process.stderr, signal: interrupted.signal },
  });
  const seconds = Math.round((Date.now() - begun) / 1_000);
  const part = beginWith === undefined ? only : [...(only ?? []), `from ${beginWith}`];
  if (report !== undefined) {
    await writeReport(report, { target, findings, begun, seconds, only: part });
  }
  if (!json) {
    for (const line of summaryLines(findings, seconds)) console.log(line);
  }
  if (stoppedBefore !== undefined) return 2;
  return findings.every(({ outcome }) => outcome !== 'failed') ? 0 : 1;
}

/** Writes the report as HTML, with what the relay says of itself. */
async function writeReport(
  path: string,
  {
    target,
    findings,
    begun,
    ...facts
  }: {
    readonly target: Target;
    readonly findings: readonly Finding[];
    readonly begun: number;
    readonly seconds: number;
    readonly only: string[] | undefined;
  },
): Promise<void> {
  await using context = await TestContext.open(target, 'https');
  const answer = await (await context.anonymous()).call('relay.info');
  const { name, software } = (answer.ok ? answer.result : {}) as Record<string, unknown>;
  const text = htmlReport(findings, {
    ...{ relay: target.baseUrl, relayId: target.entry.relay_id, network: target.network.context },
    ...{ name: typeof name === 'string' ? name : target.baseUrl, version: manifest.version },
    relayVersion: typeof software === 'string' ? software : undefined,
    begun: new Date(begun),
    ...facts,
  });
  await writeFile(path, text);
}

/** Formats an error; an AggregateError (several addresses that all refuse) has no text itself. */
function textOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(textOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}

// The reader of the output has closed it, as `head` does: end without an error.
process.stdout.on('error', () => process.exit());

command.parseAsync().catch((error: unknown) => {
  // Commander has printed its errors already; --help is no error.
  const isPrinted = error instanceof CommanderError;
  if (!isPrinted) console.error(terminalLine(textOf(error)));
  process.exitCode = isPrinted && error.exitCode === 0 ? 0 : 2;
});
