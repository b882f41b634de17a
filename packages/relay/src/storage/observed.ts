import type { RelayConfig } from '../config/index.ts';
import type { RelayContext } from '../context.ts';
import {
  storageBlocked,
  storageCheckpointsStopped,
  storageCommitUnknown,
  storageConflicted,
  storageDamaged,
  storageLockLost,
  storageLost,
  storagePagesUnchecked,
  storageRestored,
  storageResumed,
  storageUnflushed,
  storageWentBack,
} from '../observability/storage-events.ts';
import { openStorage } from './open.ts';
import type { PostgresObserver } from './postgres/observer.ts';
import type { Storage, StorageFaults, Upcoming } from './types.ts';

/** The exit code for input and output errors, of sysexits.h. */
const flushFailed = 74;

/**
 * Opens the storage of a relay process, with its events in the log and the metrics.
 *
 * @throws Error as {@link openStorage}
 */
export async function openObservedStorage(
  config: Pick<RelayConfig, 'data' | 'storage' | 'bus'>,
  {
    faults,
    observed,
    upcoming,
    ...announcements
  }: {
    readonly faults: StorageFaults | undefined;
    readonly observed: Pick<RelayContext, 'log' | 'metrics'>;
    readonly upcoming: Upcoming;
  } & Pick<PostgresObserver, 'unannounced' | 'reachable'>,
): Promise<Storage> {
  return await openStorage(config, {
    ...{ faults, upcoming },
    observer: {
      lost: (error) => storageLost(observed, error),
      restored: () => storageRestored(observed),
      blocked: (reason, error) => storageBlocked(observed, { reason, error }),
      resumed: () => storageResumed(observed),
      wentBack: (transactions) => storageWentBack(observed, transactions),
      unflushed: (error) => {
        storageUnflushed(observed, error);
        // At once: from here on any answer could be of a write that is lost.
        process.exit(flushFailed);
      },
      checkpointsStopped: (error) => storageCheckpointsStopped(observed, error),
      damaged: (problem) => storageDamaged(observed, problem),
      pagesUnchecked: (seconds) => storagePagesUnchecked(observed, seconds),
      conflicted: () => storageConflicted(observed),
      commitUnknown: (error) => storageCommitUnknown(observed, error),
      lockLost: (error) => storageLockLost(observed, error),
      ...announcements,
    },
  });
}
