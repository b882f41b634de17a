import type { Command } from 'commander';
import { configuredDescriptor } from '../about/configured-descriptor.ts';
import { systemClock } from '../clock.ts';
import { listenAddress, publicAddresses } from '../config/addresses.ts';
import { relayIdentity } from '../keys/identity.ts';
import { loadKeys } from '../keys/keys.ts';
import { configFrom, type Flags, networkOf, withConfig } from './config-flags.ts';

/** Completes `posthouse descriptor`. */
export function configure(command: Command): void {
  withConfig(command)
    .addHelpText('after', '\nExample:\n  posthouse descriptor --config relay.json')
    .action(printDescriptor);
}

async function printDescriptor(options: Flags): Promise<void> {
  const { config } = configFrom(options, 'descriptor');
  const network = networkOf(config);
  const identity = relayIdentity(network, await loadKeys(config.data));
  const addresses = publicAddresses(network, config);
  addresses.setPort(listenAddress(config).port);
  const source = configuredDescriptor(config, { network, identity, clock: systemClock, addresses });
  process.stdout.write(`${await source.current()}\n`);
}
