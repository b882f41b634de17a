import { nodeRandom } from '@posthouse/protocol/node';
import type { Command } from 'commander';
import { relayIdentity } from '../keys/identity.ts';
import { createKeys, keyFolder, loadKeys } from '../keys/keys.ts';
import { configFrom, type Flags, networkOf, withConfig } from './config-flags.ts';

/** Completes `posthouse init`. */
export function configure(command: Command): void {
  withConfig(command).action(init);
}

async function init(options: Flags): Promise<void> {
  const { config } = configFrom(options, 'keys');
  const isNew = await createKeys(config.data, nodeRandom);
  const identity = relayIdentity(networkOf(config), await loadKeys(config.data));
  const state = isNew ? 'made' : 'there already';
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
