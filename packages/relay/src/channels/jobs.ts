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

/** Whoever hides a post wakes it. */
export const retentionJobName = 'channels.retention';

/**
 * Removes what has been kept as long as was promised at its acceptance, and the edits of posts that
 * nobody reads any more (06 §7.5). Descriptors go last: what needs them is gone by then.
 */
export const retentionJob: Job = {
  name: retentionJobName,
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
        deleteHiddenEdits(tx, channelId, { sequences, portion: batchSize }),
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
    // What is overdue of a channel that failed is no deadline: its next try is.
    const behind = backoff.nextRetry(retentionJobName) === undefined ? undefined : now;
    const next = await storage.read((tx) => nextRetentionDeadline(tx, behind));
    // What became due meanwhile, or could not go yet, has its turn a moment later.
    return nextRun(context, retentionJobName, next && Math.max(next, now + 1));
  },
};

/** A run of the job. */
interface Run {
  readonly context: RelayContext;
  readonly signal: AbortSignal;
  /** What is due by then, Unix seconds. */
  readonly now: number;
}

/** Something to remove, and how it goes, in a write of its channel. */
interface Step {
  readonly task: string;
  readonly find: (tx: Reader, due: DueRange) => Promise<DueEvent[]>;
  /** Says how much went; as much as a portion: there may be more of the same. */
  readonly remove: (tx: Writer, channelId: string, sequences: number[]) => Promise<number>;
}

async function forEachChannel(
  { context, signal, now }: Run,
  { task, find, remove }: Step,
): Promise<void> {
  await forEachAggregate(context, signal, {
    ...{ job: retentionJobName, task },
    find: (tx, after: DueEvent | undefined) => find(tx, { now, after, portion: batchSize }),
    ownerOf: ({ channelId }) => `channel:${channelId}`,
    work: async (owner, due) => {
      const [{ channelId }] = due;
      const sequences = due.map(({ sequence }) => sequence);
      const removeSome = (tx: Writer) => remove(tx, channelId, sequences);
      while (!signal.aborted && (await context.storage.write(owner, removeSome)) >= batchSize);
    },
  });
}

async function removeReports({ context, signal, now }: Run): Promise<void> {
  const remove = (tx: Writer) => deleteDueReports(tx, now, batchSize);
  while (!signal.aborted && (await context.storage.write('channels.jobs', remove)) > 0);
}
