/** Reads the configuration of a `posthouse` command from file, environment and flags. */
import { Network } from '@posthouse/protocol';
import { nodePrimitives } from '@posthouse/protocol/node';
import { type Command, Option } from 'commander';
import { type LoadedConfig, loadConfig, type Purpose, type RelayConfig } from '../config/index.ts';
import { processMemory } from '../memory.ts';
import { processFiles } from '../open-files.ts';

/** Flags of the command line, with the setting each one sets. */
const flags: Readonly<Record<string, string>> = {
  data: 'data',
  listen: 'listen',
  network: 'network',
  service: 'service',
  dev: 'dev',
  peer: 'public.peer',
  log: 'log',
};

/** Parsed flags; a command may have more of its own. */
export type Flags = Readonly<Record<string, string | boolean | undefined>>;

/** Adds the flags of the configuration to a command. */
export function withConfig(command: Command): Command {
  return command
    .option('--config <file>', 'configuration file, JSON')
    .option('--data <folder>', 'folder for database, keys and certificates')
    .option('--network <context>', 'network context neo:<magic>:<registry>')
    .option('--service <word>', 'service word of the network')
    .option('--listen <host:port>', 'address to listen on')
    .option('--peer <multiaddr>', 'libp2p TCP address for other relays, without Peer ID')
    .option('--dev', 'development: own keys, certificate authority and registry file')
    .addOption(
      new Option('--log <level>', 'how much is logged').choices([
        'silent',
        'error',
        'warn',
        'info',
        'debug',
      ]),
    );
}

/** Returns the values of the flags by the settings' paths; `undefined` if a flag was not given. */
export function flagValues(options: Flags): Record<string, string | boolean | undefined> {
  return Object.fromEntries(
    Object.entries(flags).map(([flag, path]) => [path, options[flag]] as const),
  );
}

/**
 * Loads the configuration from file, environment and flags.
 * @throws ConfigError
 */
export function configFrom(options: Flags, purpose: Purpose = 'relay'): LoadedConfig {
  const file = options.config ?? process.env.POSTHOUSE_CONFIG;
  return loadConfig({
    file: typeof file === 'string' ? file : undefined,
    environment: process.env,
    flags: flagValues(options),
    purpose,
    memory: processMemory(),
    openFiles: processFiles(),
  });
}

/** Returns the network of a configuration. */
export function networkOf({
  network: context,
  service: word,
}: Pick<RelayConfig, 'network' | 'service'>): Network {
  return new Network({ context, word, primitives: nodePrimitives });
}
