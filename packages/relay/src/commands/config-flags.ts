/** What every command of the operator takes: the configuration, by file, environment and flags. */
import { type Command, Option } from 'commander';
import { type LoadedConfig, loadConfig, type Purpose } from '../config/index.ts';

/** Flags of the command line, by the setting they stand for. */
const flags: Readonly<Record<string, string>> = {
  data: 'data',
  listen: 'listen',
  network: 'network',
  service: 'service',
  dev: 'dev',
  peer: 'public.peer',
  log: 'log',
};

/** Flags as commander has read them, and any others beside them. */
export type Flags = Readonly<Record<string, string | boolean | undefined>>;

/** Gives a command the flags of the configuration. */
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

/** @throws ConfigError */
export function configFrom(options: Flags, purpose: Purpose = 'relay'): LoadedConfig {
  const chosen = Object.entries(flags).map(([flag, path]) => [path, options[flag]]);
  const file = options.config ?? process.env.POSTHOUSE_CONFIG;
  return loadConfig({
    file: typeof file === 'string' ? file : undefined,
    environment: process.env,
    flags: Object.fromEntries(chosen),
    purpose,
  });
}
