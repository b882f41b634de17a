#!/usr/bin/env node
/** `posthouse-conformance`: runs the checks against anybody's relay, by URL. */
import { Command, CommanderError } from 'commander';
import { checks } from './checks/index.ts';
import { TestContext } from './fixtures/test-context.ts';
import { checkLines, findingLine, methodLines, summaryLines } from './report.ts';
import { type Finding, runChecks, selectChecks } from './runner.ts';
import { loadTarget, type Target } from './target.ts';

interface Options {
  readonly relay?: string;
  readonly registry?: string;
  readonly ca?: string;
  readonly service: string;
  readonly only?: string[];
  readonly json?: boolean;
  readonly list?: boolean;
  readonly byMethod?: boolean;
}

const command = new Command('posthouse-conformance')
  .description('Checks a relay of the protocol from outside, over HTTPS and WSS.')
  .option('--relay <url>', 'HTTPS base address of the relay')
  .option('--registry <file>', 'static registry file that names the relay')
  .option('--ca <file>', 'certificate authority of the relay, in PEM')
  .option('--service <word>', 'service word', 'svc')
  .option('--only <prefix...>', 'only checks whose id starts so')
  .option('--json', 'one JSON object a line instead of text')
  .option('--list', 'list the checks and end; needs no relay')
  .option('--by-method', 'with --list: how many checks and runs each method has')
  .addHelpText(
    'after',
    '\nExit status: 0 all passed, 1 a check failed, 2 the run could not be made.',
  )
  .exitOverride()
  .action(async (options: Options) => {
    const selected = selectChecks(checks, options.only);
    if (options.list === true) {
      const lines = options.byMethod === true ? methodLines(selected) : checkLines(selected);
      for (const line of lines) console.log(line);
      return;
    }
    if (options.byMethod === true) throw new Error('--by-method goes with --list');
    const target = await targetOf(options);
    process.exitCode = (await report(target, options)) ? 0 : 1;
  });

async function targetOf({ relay, registry, ca, service }: Options): Promise<Target> {
  if (relay === undefined || registry === undefined) {
    throw new Error('--relay and --registry say which relay is to be checked');
  }
  const target = await loadTarget({ relay, registry, word: service, ...(ca && { ca }) });
  try {
    // What fails here would fail in every check, hundreds of times.
    await using _ = await TestContext.open(target, 'https');
  } catch (cause) {
    const text = textOf(cause);
    const hint = /certificate/.test(text) ? '; --ca names a file with its authority' : '';
    throw new Error(`${relay} cannot be used: ${text}${hint}`, { cause });
  }
  return target;
}

async function report(target: Target, { only, json }: Options): Promise<boolean> {
  const begun = Date.now();
  const findings: Finding[] = [];
  for await (const finding of runChecks(target, checks, { ...(only && { only }) })) {
    findings.push(finding);
    console.log(json === true ? JSON.stringify(finding) : findingLine(finding));
  }
  if (json !== true) {
    const seconds = Math.round((Date.now() - begun) / 1_000);
    for (const line of summaryLines(findings, seconds)) console.log(line);
  }
  return findings.every(({ outcome }) => outcome !== 'failed');
}

/** Several addresses of one name that all refuse are one error without a text of its own. */
function textOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(textOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}

// Whoever read the output has gone, as `head` does: there is nothing left to say.
process.stdout.on('error', () => process.exit());

command.parseAsync().catch((error: unknown) => {
  // Commander has said it already; to ask for help is no mistake.
  const said = error instanceof CommanderError;
  if (!said) console.error(textOf(error));
  process.exitCode = said && error.exitCode === 0 ? 0 : 2;
});
