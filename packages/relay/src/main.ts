#!/usr/bin/env node
import { Network } from '@posthouse/protocol';
/** The operator's command `posthouse`: a thin shell over the library. */
import { nodePrimitives, nodeRandom } from '@posthouse/protocol/node';
import { Command } from 'commander';
import { configuredDescriptor } from './about/configured-descriptor.ts';
import { systemClock } from './clock.ts';
import { configFrom, type Flags, withConfig } from './commands/config-flags.ts';
import { moveCommand } from './commands/move.ts';
import { reportsCommand } from './commands/reports.ts';
import { listenAddress, publicAddresses } from './config/addresses.ts';
import { ConfigError, explainConfig, type RelayConfig } from './config/index.ts';
import { relayIdentity } from './keys/identity.ts';
import { createKeys, keyFolder, loadKeys } from './keys/keys.ts';
import { Relay } from './relay.ts';

function command(name: string, description: string): Command {
  return withConfig(new Command(name).description(description));
}

/** Runs until SIGTERM or SIGINT; the process then ends by itself. */
async function serve(options: Flags): Promise<void> {
  const { config } = configFrom(options);
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

async function init(options: Flags): Promise<void> {
  const { config } = configFrom(options, 'keys');
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

async function descriptor(options: Flags): Promise<void> {
  const { config } = configFrom(options, 'descriptor');
  const network = networkOf(config);
  const identity = relayIdentity(network, await loadKeys(config.data));
  const addresses = publicAddresses(network, config);
  addresses.setPort(listenAddress(config).port);
  const source = configuredDescriptor(config, { network, identity, clock: systemClock, addresses });
  process.stdout.write(`${await source.current()}\n`);
}

async function explain(options: Flags): Promise<void> {
  process.stdout.write(explainConfig(configFrom(options)));
}

function networkOf({ network: context, service: word }: RelayConfig): Network {
  return new Network({ context, word, primitives: nodePrimitives });
}

const program = new Command('posthouse')
  .description('A relay of a network in which people own their accounts.')
  // Flags behind the name of a command are that command's.
  .enablePositionalOptions()
  .addCommand(command('serve', 'run the relay').action(serve))
  .addCommand(command('init', "make the relay's keys").action(init))
  .addCommand(command('descriptor', "print the relay's signed descriptor").action(descriptor))
  .addCommand(moveCommand())
  .addCommand(reportsCommand())
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
