/** A run as its operator sees it: findings as they come, how far it is, and how to go on after Ctrl+C. */
import { Progress } from '@posthouse/protocol/progress';
import type { Check } from './check.ts';
import { findingLine } from './report.ts';
import { type Finding, runChecks } from './runner.ts';
import type { Target } from './target.ts';

/** The parts of a standard stream that a run writes to. */
export interface RunStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

export interface RunOutput {
  /** Prints findings, progress and the end as one JSON object per line on `out`. */
  readonly json: boolean;
  readonly out: RunStream;
  /** Shows progress without `json`: a bar on a terminal, else a line every five seconds. */
  readonly errors: RunStream;
}

/** The findings of a run, and where it was stopped, if it was. */
export interface RunResult {
  readonly findings: readonly Finding[];
  /** The check with which another run goes on. */
  readonly stoppedBefore: string | undefined;
}

/**
 * Runs checks and prints each finding. After the signal, the check under way ends, and how to go on is
 * printed.
 */
export async function printRun(
  target: Target,
  selected: readonly Check[],
  { json, out, errors, signal }: RunOutput & { readonly signal: AbortSignal },
): Promise<RunResult> {
  const total = selected.reduce((sum, { transports }) => sum + transports.length, 0);
  const stream = json ? out : errors;
  const progress = new Progress({
    form: json ? 'json' : stream.isTTY === true ? 'bar' : 'lines',
    write: (text) => stream.write(text),
    now: () => performance.now(),
    columns: () => stream.columns,
  });
  const findings: Finding[] = [];
  const show = () => progress.show({ step: 'checks', done: findings.length, total });
  show();
  for await (const finding of runChecks(target, selected, signal)) {
    findings.push(finding);
    progress.end();
    out.write(`${json ? JSON.stringify(finding) : findingLine(finding)}\n`);
    show();
  }
  progress.end();
  const stoppedBefore = nextCheck(selected, findings.length);
  if (stoppedBefore !== undefined) {
    const next = `the same command with --begin-with ${stoppedBefore} goes on`;
    const done = `${findings.length} of ${total} runs were made`;
    if (json)
      out.write(`${JSON.stringify({ event: 'stopped', done: findings.length, total, next })}\n`);
    else errors.write(`stopped: ${done}; ${next}\n`);
  }
  return { findings, stoppedBefore };
}

/** The first check that has not made all of its runs. */
function nextCheck(selected: readonly Check[], made: number): string | undefined {
  let runs = 0;
  return selected.find(({ transports }) => {
    runs += transports.length;
    return runs > made;
  })?.id;
}
