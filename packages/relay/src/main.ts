#!/usr/bin/env node
/** The operator's command `posthouse`: a thin shell over the library. */
import { nodePrimitives, nodeRandom } from '@posthouse/primitives-node';
import { Network } from '@posthouse/protocol';
import { Command, Option } from 'commander';
import { addressesOf, listenAddress } from './addresses.ts';
import { systemClock } from './clock.ts';
import {
  ConfigError,
  explainConfig,
  type LoadedConfig,
  loadConfig,
  type Purpose,
  type RelayConfig,
} from './config/index.ts';
import { descriptorSource } from './descriptor.ts';
import { relayIdentity } from './keys/identity.ts';
import { createKeys, keyFolder, loadKeys } from './keys/keys.ts';
import { moveCommand } from './move-command.ts';
import { Relay } from './relay.ts';

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

function command(name: string, description: string): Command {
  return new Command(name)
    .description(description)
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

function load(
  options: Record<string, string | boolean | undefined>,
  purpose: Purpose = 'relay',
): LoadedConfig {
  const chosen = Object.entries(flags).map(([flag, path]) => [path, options[flag]]);
  const file = options.config ?? process.env.POSTHOUSE_CONFIG;
  return loadConfig({
    file: typeof file === 'string' ? file : undefined,
    environment: process.env,
    flags: Object.fromEntries(chosen),
    purpose,
  });
}

/** Runs until SIGTERM or SIGINT; the process then ends by itself. */
async function serve(options: Record<string, string | boolean | undefined>): Promise<void> {
  const { config } = load(options);
  const stopping = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => stopping.abort());
  }
  const relay = await Relay.start(config, { signal: stopping.signal });
  const { relayId, network } = relay;
  const line = ['ready', relay.https[0], relay.wss[0], relayId, network.context].join(' ');
  process.stdout.write(`${line}\n`);
  await relay.closed;
}

async function init(options: Record<string, string | boolean | undefined>): Promise<void> {
  const { config } = load(options, 'keys');
  const made = await createKeys(config.data, nodeRandom);
  const identity = relayIdentity(networkOf(config), await loadKeys(config.data));
  const state = made ? 'made' : 'there already';
  process.stdout.write(
    [
      `keys ${state}: ${keyFolder(config.data)}`,
      `relay id ${identity.relayId}`,
      `public key ${identity.publicKey}`,
      `peer id ${identity.peerId}`,
      '',
    ].join('\n'),
  );
}

async function descriptor(options: Record<string, string | boolean | undefined>): Promise<void> {
  const { config } = load(options, 'descriptor');
  const network = networkOf(config);
  const identity = relayIdentity(network, await loadKeys(config.data));
  const addresses = addressesOf(network, config);
  addresses.listensOn(listenAddress(config).port);
  const source = descriptorSource(config, { network, identity, clock: systemClock, addresses });
  process.stdout.write(`${await source.current()}\n`);
}

async function explain(options: Record<string, string | boolean | undefined>): Promise<void> {
  process.stdout.write(explainConfig(load(options)));
}

function networkOf({ network: context, service: word }: RelayConfig): Network {
  return new Network({ context, word, primitives: nodePrimitives });
}

const program = new Command('posthouse')
  .description('A relay of a network in which people own their accounts.')
  .addCommand(command('serve', 'run the relay').action(serve))
  .addCommand(command('init', "make the relay's keys").action(init))
  .addCommand(command('descriptor', "print the relay's signed descriptor").action(descriptor))
  .addCommand(moveCommand())
  .addCommand(
    new Command('config')
      .description('the configuration')
      .addCommand(
        command('explain', 'print every key, its value, its source, its meaning').action(explain),
      ),
  );

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof ConfigError) {
    process.stderr.write(`the configuration is wrong:\n${error.message}\n`);
    process.exitCode = 2;
  } else {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}
