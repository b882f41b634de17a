/** What the scripts that check packages and deployments print: a line for each step, and what failed. */

let failures = 0;

/** Prints a step's outcome, and its output if it failed; the process then ends with status 1. */
export function report(isGood: boolean, what: string, output = ''): void {
  console.log(`${isGood ? 'ok    ' : 'FAILED'} ${what}`);
  if (isGood) return;
  failures += 1;
  process.exitCode = 1;
  console.log(output);
}

/** Prints that a step was left out, and why. */
export function reportSkipped(what: string, why: string): void {
  console.log(`      ${what} was not checked: ${why}`);
}

/** Number of steps that failed so far. */
export const failedSteps = (): number => failures;
