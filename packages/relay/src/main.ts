#!/usr/bin/env node
/** The operator's command `posthouse`. */
import { createProgram } from './commands/program.ts';

try {
  const program = await createProgram(process.argv.slice(2));
  await program.parseAsync();
} catch (error) {
  const { ConfigError, systemFault } = await import('./config/index.ts');
  if (error instanceof ConfigError) {
    process.stderr.write(`the configuration is invalid:\n${error.message}\n`);
    process.exitCode = 2;
  } else {
    const message = error instanceof Error ? error.message : String(error);
    process.stderr.write(`${systemFault(error) ?? message}\n`);
    process.exitCode = 1;
  }
}
