import type { RelayConfig } from '../config/index.ts';
import { openPostgres, type PostgresObserver } from './postgres.ts';
import { openSqlite } from './sqlite.ts';
import type { Storage, StorageFaults } from './types.ts';

/**
 * Opens the storage a relay process works on.
 *
 * @throws Error where another process has it in a way that excludes this one, or it cannot be reached
 */
export async function openStorage(
  { data, storage, bus }: Pick<RelayConfig, 'data' | 'storage' | 'bus'>,
  parts: { readonly faults?: StorageFaults | undefined; readonly observer: PostgresObserver },
): Promise<Storage> {
  if (storage.engine === 'sqlite') return openSqlite(data, parts.faults);
  return await openPostgres({
    url: storage.url,
    connections: storage.connections,
    presence: bus.nats === '' ? 'alone' : 'together',
    ...parts,
  });
}
