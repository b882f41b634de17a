import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import {
  type Network,
  type Registry,
  type RelayEntry,
  type StaticRegistryFile,
  staticRegistry,
} from '@posthouse/protocol';
import { parseJson } from '@posthouse/protocol/json';
import type { RegistryStatus } from '../context.ts';
import { withFileLock } from '../storage/sqlite/file-lock.ts';

/**
 * Reads a registry file; `undefined` if there is none.
 *
 * @throws JsonError, ProtocolError `bad_request` for a malformed file or one of another network
 */
export async function readRegistry(network: Network, path: string): Promise<Registry | undefined> {
  const text = await readText(path);
  return text === undefined ? undefined : staticRegistry(network, parseJson(text));
}

/** Reads a file; `undefined` if there is none. */
async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
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

/**
 * Enters a relay into a registry file, and creates the file if there is none. For development. Several
 * relays, also of several processes, can enter at once: no entry is lost.
 *
 * @throws JsonError, ProtocolError `bad_request` for a malformed file or one of another network
 */
export async function enterRelay(network: Network, path: string, entry: RelayEntry): Promise<void> {
  for (;;) {
    const before = await readText(path);
    const relays: RelayEntry[] = [];
    const registry = before === undefined ? undefined : staticRegistry(network, parseJson(before));
    for await (const other of registry?.listRelays() ?? []) {
      if (other.relay_id !== entry.relay_id) relays.push(other);
    }
    const file: StaticRegistryFile = { context: network.context, relays: [...relays, entry] };
    // If another relay has entered since the file was read, its entry is read first.
    if (replaceUnchanged(path, before, `${JSON.stringify(file, undefined, 2)}\n`)) return;
  }
}

/** Replaces a file's text if it is still `before`; returns whether it was. */
function replaceUnchanged(path: string, before: string | undefined, after: string): boolean {
  return withFileLock(`${path}.lock`, () => {
    const current = existsSync(path) ? readFileSync(path, 'utf8') : undefined;
    if (current !== before) return false;
    writeFileSync(`${path}.new`, after);
    renameSync(`${path}.new`, path);
    return true;
  });
}
