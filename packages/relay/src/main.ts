#!/usr/bin/env node
/** The operator's command `posthouse`: one file in `commands/` for each verb. */
import { Command } from 'commander';
import { blockCommand } from './commands/block.ts';
import { checkCommand, doctorCommand } from './commands/check.ts';
import { clockCommand } from './commands/clock.ts';
import { configCommand } from './commands/config.ts';
import { descriptorCommand } from './commands/descriptor.ts';
import { devCommand } from './commands/dev.ts';
import { initCommand } from './commands/init.ts';
import { moveCommand } from './commands/move.ts';
import { peersCommand } from './commands/peers.ts';
import { registryCommand } from './commands/registry.ts';
import { reportsCommand } from './commands/reports.ts';
import { serveCommand } from './commands/serve.ts';
import { ConfigError } from './config/index.ts';

const program = new Command('posthouse')
  .description('A relay of a network in which people own their accounts.')
  // Flags after a command's name belong to that command.
  .enablePositionalOptions()
  .addCommand(serveCommand())
  .addCommand(devCommand())
  .addCommand(initCommand())
  .addCommand(descriptorCommand())
  .addCommand(moveCommand())
  .addCommand(reportsCommand())
  .addCommand(peersCommand())
  .addCommand(blockCommand())
  .addCommand(registryCommand())
  .addCommand(clockCommand())
  .addCommand(checkCommand())
  .addCommand(doctorCommand())
  .addCommand(configCommand());

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof ConfigError) {
    process.stderr.write(`the configuration is invalid:\n${error.message}\n`);
    process.exitCode = 2;
  } else {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}
