/** Work of jobs in transactions of a bounded size. */
import type { RelayContext } from '../../context.ts';
import type { Writer } from '../../storage/types.ts';

/** Rows that one transaction deletes or changes. */
export const batchSize = 200;

/** A run of a job. */
export interface JobRun {
  readonly context: RelayContext;
  readonly signal: AbortSignal;
  /** What is due by then, Unix seconds. */
  readonly now: number;
}

/** The aggregate of what a job finds in a group. */
export function aggregateOf({ groupId }: { readonly groupId: string }): string {
  return `group:${groupId}`;
}

/** Repeats a deletion in one group until a batch was not full. */
export async function deleteInGroup(
  { context: { storage }, signal }: JobRun,
  aggregate: string,
  deleteBatch: (tx: Writer) => Promise<number>,
): Promise<void> {
  while (!signal.aborted && (await storage.write(aggregate, deleteBatch)) === batchSize);
}

/** Repeats a deletion across all groups until nothing is left to delete. */
export async function deleteEverywhere(
  { context: { storage }, signal }: JobRun,
  deleteBatch: (tx: Writer) => Promise<number>,
): Promise<void> {
  while (!signal.aborted) {
    if ((await storage.write('groups.jobs', deleteBatch)) === 0) return;
  }
}
