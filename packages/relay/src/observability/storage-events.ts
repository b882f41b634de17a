/** Events of storage; as `events.ts`. */
import type { RelayContext } from '../context.ts';

type Observed = Pick<RelayContext, 'log' | 'metrics'>;

/** Records that the database server is unreachable; calls wait a moment, then fail. */
export function storageLost({ log, metrics }: Observed, error: unknown): void {
  metrics.count('storage_lost');
  log.error({ err: error }, 'storage lost');
}

export function storageRestored({ log }: Observed): void {
  log.info('storage reachable again');
}

/**
 * Records that the embedded database does not serve calls, which get `temporarily_unavailable`; one
 * line until {@link storageResumed}.
 */
export function storageBlocked(
  { log, metrics }: Observed,
  { reason, error }: { readonly reason: string; readonly error: unknown },
): void {
  metrics.count('storage_blocked');
  metrics.count('storage_blocked_now');
  log.error({ reason, err: error }, 'storage accepts no writes');
}

export function storageResumed({ log, metrics }: Observed): void {
  metrics.count('storage_blocked_now', {}, -1);
  log.info('storage accepts writes again');
}

/** Records that the embedded database lacks transactions that were answered as stored. */
export function storageWentBack({ log, metrics }: Observed, transactions: number): void {
  metrics.count('storage_went_back');
  log.error(
    { transactions },
    'the database lacks its last transactions: an older copy, or its log ended early; check the ' +
      'disk, stop the relay and run `posthouse restored`',
  );
}

/** Records that a flush of the embedded database failed; the process ends. */
export function storageUnflushed({ log }: Observed, error: unknown): void {
  log.fatal(
    { err: error },
    'the disk does not store what is written: check it, then start the relay again',
  );
}

/** Records that the thread that copies the embedded database's log has ended. */
export function storageCheckpointsStopped({ log }: Observed, error: unknown): void {
  log.error({ err: error }, 'checkpoints go on in the event loop: restart the relay');
}

/** Records that a check found bad pages in the embedded database. */
export function storageDamaged({ log, metrics }: Observed, problem: string): void {
  metrics.count('storage_damaged');
  log.error({ problem }, 'the database is damaged');
}

/** Records that the check of the embedded database's pages did not end in its time. */
export function storagePagesUnchecked({ log }: Observed, seconds: number): void {
  log.warn(
    { seconds },
    'not all pages of the database were checked in time: run `posthouse backup`, which reads every row',
  );
}

export function databaseMeasured(
  { metrics }: Pick<Observed, 'metrics'>,
  { bytes, unused }: { readonly bytes: number; readonly unused: number },
): void {
  metrics.set('database_bytes', bytes);
  metrics.set('database_unused_bytes', unused);
}

/** Facts of a disk: bytes that are free, and below which calls that write are refused. */
interface DiskFacts {
  readonly part: string;
  readonly folder: string;
  readonly free: number;
  readonly floor: number;
}

export function diskMeasured(
  { metrics }: Pick<Observed, 'metrics'>,
  { part, free }: Pick<DiskFacts, 'part' | 'free'>,
): void {
  metrics.set('disk_free_bytes', free, { part });
}

/** Records that a disk has less room than `limits.diskFree`; one line until it has more. */
export function diskLow({ log, metrics }: Observed, facts: DiskFacts): void {
  metrics.set('disk_low', 1, { part: facts.part });
  log.error(facts, 'the disk is nearly full: calls that write are refused until there is room');
}

export function diskHasRoomAgain({ log, metrics }: Observed, facts: DiskFacts): void {
  metrics.set('disk_low', 0, { part: facts.part });
  log.info(facts, 'the disk has room again');
}

/** Records a write that is retried after a conflict. */
export function storageConflicted({ metrics }: Observed): void {
  metrics.count('storage_conflicts');
}

/** Records a commit whose outcome is unknown; the caller got `temporarily_unavailable`. */
export function storageCommitUnknown({ log, metrics }: Observed, error: unknown): void {
  metrics.count('storage_commits_unknown');
  log.error({ err: error }, 'outcome of a commit unknown');
}

/** Records that another process now holds the database's process lock. */
export function storageLockLost({ log, metrics }: Observed, error: unknown): void {
  metrics.count('storage_lock_lost');
  log.error({ err: error }, 'storage lock lost to another process');
}

/** Records that other users of the machine can enter a folder of the relay. */
export function dataFolderOpen(
  { log }: Pick<RelayContext, 'log'>,
  { folder, mode }: { readonly folder: string; readonly mode: string },
): void {
  log.warn(
    { folder, mode },
    'other users of this machine can enter the folder: run chmod 700 on it',
  );
}
