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
 * Reads a registry file; `undefined` if there is none.
 *
 * @throws JsonError, ProtocolError `bad_request` for a malformed file or one of another network
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

/** Reads a relay's status from a registry file, each time anew: an operator may change the file. */
export function registryStatusIn(network: Network, path: string, relayId: string): RegistryStatus {
  return {
    async isActive() {
      try {
        const registry = await readRegistry(network, path);
        const entry = await registry?.getRelay(relayId);
        return entry?.status === 'active';
      } catch {
        // A broken file, or one that is being changed, lists no relay; the next start reports the
        // error.
        return false;
      }
    },
  };
}

/** Enters a relay into a registry file, and creates the file if there is none. For development. */
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
