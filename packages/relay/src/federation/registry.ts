import { readFile, rename, writeFile } from 'node:fs/promises';
import {
  type Network,
  type Registry,
  type RelayEntry,
  type StaticRegistryFile,
  staticRegistry,
} from '@posthouse/protocol';
import { parseJson } from '@posthouse/protocol/json';
import type { RegistryStatus } from '../context.ts';

/**
 * The registry in a file; `undefined` where there is no file.
 * @throws JsonError, ProtocolError `bad_request` for a file that is none, or of another network
 */
export async function readRegistry(network: Network, path: string): Promise<Registry | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  return staticRegistry(network, parseJson(text));
}

/** What a registry file says of a relay, read anew each time: an operator may change it. */
export function registryStatusIn(network: Network, path: string, relayId: string): RegistryStatus {
  return {
    async isActive() {
      try {
        const registry = await readRegistry(network, path);
        const entry = await registry?.getRelay(relayId);
        return entry?.status === 'active';
      } catch {
        // A file that is being changed, or is broken, names nobody; a start would say why.
        return false;
      }
    },
  };
}

/** Enters a relay into a registry file, making the file where there is none. For development. */
export async function enterRelay(network: Network, path: string, entry: RelayEntry): Promise<void> {
  const registry = await readRegistry(network, path);
  const relays: RelayEntry[] = [];
  for await (const other of registry?.listRelays() ?? []) {
    if (other.relay_id !== entry.relay_id) relays.push(other);
  }
  const file: StaticRegistryFile = { context: network.context, relays: [...relays, entry] };
  await writeFile(`${path}.new`, `${JSON.stringify(file, undefined, 2)}\n`);
  await rename(`${path}.new`, path);
}
