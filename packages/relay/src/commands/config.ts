import { Command } from 'commander';
import { explainConfig } from '../config/index.ts';
import { configFrom, type Flags, withConfig } from './config-flags.ts';
import { print } from './terminal-output.ts';

/** Completes `posthouse config` with its one verb, `explain`. */
export function configure(command: Command): void {
  command.addCommand(
    withConfig(new Command('explain'))
      .description('print every setting with its value, source and meaning')
      .addHelpText('after', '\nExample:\n  posthouse config explain --config relay.json')
      .action((options: Flags) => {
        print([explainConfig(configFrom(options)).trimEnd()]);
      }),
  );
}
