#!/usr/bin/env node
/** The operator's command `posthouse`. */
import { createProgram } from './commands/program.ts';

try {
  const program = await createProgram(process.argv.slice(2));
  await program.parseAsync();
} catch (error) {
  const { ConfigError, systemFault } = await import('./config/index.ts');
  const { note } = await import('./commands/terminal-output.ts');
  if (error instanceof ConfigError) {
    note(`the configuration is invalid:\n${error.message}`);
    process.exitCode = 2;
  } else {
    const message = error instanceof Error ? error.message : String(error);
    note(systemFault(error) ?? message);
    process.exitCode = 1;
  }
}
