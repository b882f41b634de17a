import { Command } from 'commander';
import { explainConfig } from '../config/index.ts';
import { configFrom, type Flags, withConfig } from './config-flags.ts';

/** Makes `posthouse config` with its one verb, `explain`. */
export function configCommand(): Command {
  return new Command('config').description('show the configuration').addCommand(
    withConfig(new Command('explain'))
      .description('print every setting with its value, source and meaning')
      .action((options: Flags) => {
        process.stdout.write(explainConfig(configFrom(options)));
      }),
  );
}
