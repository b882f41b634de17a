#!/usr/bin/env node
/** `posthouse-conformance`: runs the checks against anybody's relay, by URL. */
import { Command } from 'commander';
import { checks } from './checks/index.ts';
import { type Finding, runChecks } from './runner.ts';
import { loadTarget } from './target.ts';

interface Options {
  readonly relay: string;
  readonly registry: string;
  readonly ca?: string;
  readonly service?: string;
  readonly only?: string[];
  readonly json?: boolean;
  readonly list?: boolean;
}

const command = new Command('posthouse-conformance')
  .description('Checks a relay of the protocol from outside, over HTTPS and WSS.')
  .requiredOption('--relay <url>', 'HTTPS base address of the relay')
  .requiredOption('--registry <file>', 'static registry file that names the relay')
  .option('--ca <file>', 'certificate authority of the relay, in PEM')
  .option('--service <word>', 'service word', 'svc')
  .option('--only <prefix...>', 'run only checks whose id starts so')
  .option('--json', 'one JSON object a line instead of text')
  .option('--list', 'list the checks and end')
  .action(async (options: Options) => {
    if (options.list === true) {
      for (const { id, source, title } of checks) console.log(`${id}\t${source}\t${title}`);
      return;
    }
    process.exitCode = (await report(options)) ? 0 : 1;
  });

async function report(options: Options): Promise<boolean> {
  const target = await loadTarget({
    relay: options.relay,
    registry: options.registry,
    ...(options.ca === undefined ? {} : { ca: options.ca }),
    ...(options.service === undefined ? {} : { word: options.service }),
  });
  const only = options.only === undefined ? {} : { only: options.only };
  const findings: Finding[] = [];
  for await (const finding of runChecks(target, checks, only)) {
    findings.push(finding);
    console.log(options.json === true ? JSON.stringify(finding) : line(finding));
  }
  if (findings.length === 0) throw new Error('no check has such an id');
  const count = (outcome: Finding['outcome']) =>
    findings.filter((finding) => finding.outcome === outcome).length;
  if (options.json !== true) {
    console.log(`${count('passed')} passed, ${count('failed')} failed`);
    for (const text of notApplicable(findings)) console.log(text);
  }
  return count('failed') === 0;
}

/** What was not checked because the relay does not offer it, and how many checks each meant. */
function notApplicable(findings: readonly Finding[]): string[] {
  const left = findings.filter(({ outcome }) => outcome === 'not_applicable');
  return [...Map.groupBy(left, ({ reason }) => reason)].map(
    ([reason, group]) => `${group.length} not applicable: ${reason}`,
  );
}

const marks = { passed: 'ok  ', failed: 'FAIL', not_applicable: 'n/a ' } as const;

function line({ outcome, id, transport, source, title, reason }: Finding): string {
  const why = reason === undefined ? '' : `\n     ${reason}`;
  return `${marks[outcome]} ${id} [${transport}] ${source}: ${title}${why}`;
}

command.parseAsync().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 2;
});
