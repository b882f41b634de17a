#!/usr/bin/env node
/** The operator's command `posthouse`. */

// Sent by habit after a rotation of logs, it would have Node open its debugger, in which every user of the
// machine can read the keys. Before anything else is loaded, which takes a while.
process.on('SIGUSR1', () => {});

try {
  const { createProgram } = await import('./commands/program.ts');
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
