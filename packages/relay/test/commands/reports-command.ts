/** `posthouse reports` in a process of its own. */
import { posthouse } from '../support/command.ts';

interface Ended {
  readonly code: number | string | null;
  readonly output: string;
  readonly errors: string;
}

/** Runs the command to its end. */
export async function runReports(
  args: readonly string[],
  environment: Record<string, string> = {},
): Promise<Ended> {
  const { ended, output } = posthouse(['reports', ...args], environment);
  const code = await ended;
  return { code, output: output.text, errors: output.errors };
}
