/** Formats checks and findings as text. */
import type { Check } from './check.ts';
import type { Finding } from './runner.ts';

/** Formats one line for each check: id, chapter and section, title; separated by tabs. */
export function checkLines(checks: readonly Check[]): string[] {
  return checks.map(({ id, source, title }) => [id, source, title].join('\t'));
}

/** Formats one line for each method or topic: its checks and runs; the last line has the sums. */
export function methodLines(checks: readonly Check[]): string[] {
  const line = (what: string, of: readonly Check[]) => {
    const runs = of.reduce((sum, { transports }) => sum + transports.length, 0);
    return [what, of.length, runs].join('\t');
  };
  const methods = [...Map.groupBy(checks, ({ method }) => method)];
  return [
    'method\tchecks\truns',
    ...methods.map(([method, of]) => line(method, of)),
    line('all', checks),
  ];
}

const marks = { passed: 'ok  ', failed: 'FAIL', not_applicable: 'n/a ' } as const;

/** Formats a finding as one line, and its reason, if any, as a second line. */
export function findingLine({ outcome, id, transport, source, title, reason }: Finding): string {
  const why = reason === undefined ? '' : `\n     ${reason}`;
  return `${marks[outcome]} ${id} [${transport}] ${source}: ${title}${why}`;
}

/** Formats the summary of a run: failures, checks that do not apply by reason, and the counts. */
export function summaryLines(findings: readonly Finding[], seconds: number): string[] {
  const of = (outcome: Finding['outcome']) =>
    findings.filter((finding) => finding.outcome === outcome);
  const [passed, failed, left] = [of('passed'), of('failed'), of('not_applicable')];
  const counts = [`${passed.length} passed`, `${failed.length} failed`];
  if (left.length > 0) counts.push(`${left.length} not applicable`);
  return [
    '',
    ...failed.map(({ id, transport }) => `failed: ${id} [${transport}]`),
    ...[...Map.groupBy(left, ({ reason }) => reason)].map(
      ([reason, group]) => `not applicable, ${group.length}: ${reason}`,
    ),
    `${counts.join(', ')} in ${seconds} s`,
  ];
}
