/** A database that was put back by other means than `posthouse restore`. */
import type { RelayConfig } from '../config/index.ts';
import { identityTable, readBoundRelay } from '../storage/identity.ts';
import { type DatabaseAddress, openExclusive } from '../storage/move/databases.ts';
import { checkInService } from '../storage/move/mark.ts';
import { parseAddress } from '../storage/move/move.ts';
import { markRestored, type RestoredStep } from '../storage/restored.ts';
import type { Migration, Storage } from '../storage/types.ts';
import { type UpgradeLog, upgradeDatabase } from '../storage/upgrade.ts';
import type { BackupWork } from './backup-file.ts';

/**
 * Marks the relay's database as put back to an earlier state: raises sequences, ends sessions, doubts
 * what others may have changed. No relay may run on it. A database of an older version is upgraded as by
 * the start of a relay: with a copy before, and notes.
 *
 * @returns when it was restored, Unix seconds
 * @throws Error that says what to do, if it is in use, lost, of another version, or was moved
 */
export async function markPutBack(
  config: Pick<RelayConfig, 'copyBeforeUpgrade' | 'data' | 'storage'>,
  {
    migrations,
    statements,
    now,
    log,
    signal,
    progress,
  }: BackupWork & {
    readonly migrations: readonly Migration[];
    readonly statements: readonly RestoredStep[];
    readonly now: number;
    /** Gets what the log of a start would say about the upgrade. */
    readonly log: UpgradeLog;
  },
): Promise<number> {
  const { data, storage } = config;
  const address: DatabaseAddress = parseAddress(
    storage.engine === 'sqlite' ? `sqlite:${data}` : storage.url,
  );
  await using database = await openExclusive(address, { mustExist: true });
  await checkInService(database.storage);
  await requireRelayDatabase(database.storage);
  signal?.throwIfAborted();
  const clock = { now: () => now };
  await upgradeDatabase({ storage: database.storage, clock, log }, config, migrations);
  const restoredAt = await markRestored(database.storage, statements, now, { signal, progress });
  database.forgetLacking();
  return restoredAt;
}

/** @throws Error if no relay was ever started on the database: nothing was put back */
async function requireRelayDatabase(storage: Storage): Promise<void> {
  const columns = await storage.read((tx) => tx.all<{ table_name: string }>(storage.catalogueSql));
  const hasFacts = columns.some((column) => column.table_name === identityTable);
  if (hasFacts && (await storage.read(readBoundRelay)) !== undefined) return;
  throw new Error('no relay has used the database yet: check `data` and `storage`');
}
