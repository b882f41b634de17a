import type { Command } from 'commander';
import type { CliEnvironment, Program } from '../client-session.ts';
import { completionScripts } from '../completion.ts';
import { UsageError } from '../exit.ts';

/** Needs no account, so it has none of the common options. */
export function completionCommand(
  base: Command,
  environment: CliEnvironment,
  program: Program,
): Command {
  return base.action(async (shell: string) => {
    const write = Object.hasOwn(completionScripts, shell) ? completionScripts[shell] : undefined;
    if (write === undefined) {
      throw new UsageError(`no completion for ${shell}: give bash, zsh or fish`);
    }
    environment.write(write(await program.build(undefined, environment)));
  });
}
