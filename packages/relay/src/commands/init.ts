import { nodeRandom } from '@posthouse/protocol/node';
import { Command } from 'commander';
import { relayIdentity } from '../keys/identity.ts';
import { createKeys, keyFolder, loadKeys } from '../keys/keys.ts';
import { configFrom, type Flags, networkOf, withConfig } from './config-flags.ts';

/** Makes `posthouse init`. */
export function initCommand(): Command {
  return withConfig(new Command('init')).description("create the relay's keys").action(init);
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
