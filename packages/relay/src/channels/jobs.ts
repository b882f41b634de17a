import type { Job, RelayContext } from '../context.ts';
import { forEachAggregate, nextRun } from '../jobs/for-each-aggregate.ts';
import type { Reader, Writer } from '../storage/types.ts';
import { deleteDueReports } from './moderation/report-store.ts';
import {
  type DueEvent,
  type DueRange,
  deleteDeletions,
  deleteDescriptors,
  deleteHiddenEdits,
  deletePosts,
  nextRetentionDeadline,
  readDueEvents,
  readDuePosts,
  readHiddenPosts,
} from './retention-store.ts';

/** Rows removed in one transaction. */
const batchSize = 200;

/** Woken when a post is deleted or withheld. */
export const retentionJobName = 'channels.retention';

/**
 * Removes everything whose deadline, fixed at its acceptance, has passed, and the edits of posts
 * that are not readable any more (06 §7.5). Descriptors are removed last, after everything that
 * needs them.
 */
export const retentionJob: Job = {
  name: retentionJobName,
  deletes: true,
  async run(context, signal) {
    const { clock, backoff, storage } = context;
    const now = clock.now();
    const run = { context, signal, now };
    await forEachChannel(run, {
      task: 'posts',
      find: readDuePosts,
      remove: (tx, channelId, sequences) => deletePosts(tx, channelId, { sequences, now }),
    });
    await forEachChannel(run, {
      task: 'edits of hidden posts',
      find: readHiddenPosts,
      remove: (tx, channelId, sequences) =>
        deleteHiddenEdits(tx, channelId, { sequences, batchSize }),
    });
    await forEachChannel(run, {
      task: 'deletions',
      find: (tx, due) => readDueEvents(tx, 'delete', due),
      remove: (tx, channelId, sequences) => deleteDeletions(tx, channelId, { sequences, now }),
    });
    await forEachChannel(run, {
      task: 'descriptors',
      find: (tx, due) => readDueEvents(tx, 'descriptor', due),
      remove: (tx, channelId, sequences) => deleteDescriptors(tx, channelId, { sequences, now }),
    });
    await removeReports(run);
    // Overdue rows of a channel that failed are no deadline: its next retry is.
    const overdue = backoff.nextRetry(retentionJobName) === undefined ? undefined : now;
    const next = await storage.read((tx) => nextRetentionDeadline(tx, overdue));
    // Rows that became due meanwhile, or could not be removed yet, are due one second later.
    return nextRun(context, retentionJobName, next && Math.max(next, now + 1));
  },
};

/** One run of the job. */
interface Run {
  readonly context: RelayContext;
  readonly signal: AbortSignal;
  /** Rows with a deadline up to now are due, Unix seconds. */
  readonly now: number;
}

/** One kind of rows to remove. */
interface Step {
  readonly task: string;
  readonly find: (tx: Reader, due: DueRange) => Promise<DueEvent[]>;
  /** Removes rows and returns how many; a full batch means that there may be more. */
  readonly remove: (tx: Writer, channelId: string, sequences: number[]) => Promise<number>;
}

async function forEachChannel(
  { context, signal, now }: Run,
  { task, find, remove }: Step,
): Promise<void> {
  await forEachAggregate(context, signal, {
    ...{ job: retentionJobName, task },
    find: (tx, after: DueEvent | undefined) => find(tx, { now, after, batchSize }),
    aggregateOf: ({ channelId }) => `channel:${channelId}`,
    work: async (owner, due) => {
      const [{ channelId }] = due;
      const sequences = due.map(({ sequence }) => sequence);
      const removeBatch = (tx: Writer) => remove(tx, channelId, sequences);
      while (!signal.aborted && (await context.storage.write(owner, removeBatch)) >= batchSize);
    },
  });
}

async function removeReports({ context, signal, now }: Run): Promise<void> {
  const remove = (tx: Writer) => deleteDueReports(tx, now, batchSize);
  while (!signal.aborted && (await context.storage.write('channels.jobs', remove)) > 0);
}
