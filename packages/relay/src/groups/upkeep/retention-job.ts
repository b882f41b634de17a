import type { Job } from '../../context.ts';
import { forEachAggregate, nextRun } from '../../jobs/for-each-aggregate.ts';
import { aggregateOf, batchSize, deleteEverywhere, deleteInGroup, type JobRun } from './batches.ts';
import {
  type DroppedSet,
  type DueCertificate,
  type DueEpoch,
  deleteCertificates,
  deleteDroppedBoxes,
  deleteExpiredEpochs,
  deleteExpiredMessages,
  deleteExpiredSent,
  nextRetentionDeadline,
  readDroppedSets,
  readDueCertificates,
  readExpiredEpochs,
} from './retention-store.ts';

const jobName = 'groups.retention';

/** Deletes what was stored for as long as was promised at its acceptance (05 §11.2, §11.3). */
export const retentionJob: Job = {
  name: jobName,
  deletes: true,
  async run(context, signal) {
    const { clock, storage } = context;
    const now = clock.now();
    const run = { context, signal, now };
    await deleteEverywhere(run, (tx) => deleteExpiredMessages(tx, now, batchSize));
    await deleteEverywhere(run, (tx) => deleteExpiredSent(tx, now, batchSize));
    await deleteEpochs(run);
    await deleteBoxes(run);
    await deleteDueCertificates(run);
    const next = await storage.read((tx) => nextRetentionDeadline(tx, now));
    return nextRun(context, jobName, next);
  },
};

async function deleteEpochs(run: JobRun): Promise<void> {
  const { context, signal, now } = run;
  await forEachAggregate(context, signal, {
    ...{ job: jobName, task: 'epochs', aggregateOf },
    find: (tx, after: DueEpoch | undefined) => readExpiredEpochs(tx, { now, after, batchSize }),
    work: (aggregate, [{ groupId }]) =>
      deleteInGroup(run, aggregate, (tx) => deleteExpiredEpochs(tx, groupId, { now, batchSize })),
  });
}

async function deleteBoxes(run: JobRun): Promise<void> {
  await forEachAggregate(run.context, run.signal, {
    ...{ job: jobName, task: 'boxes', aggregateOf },
    find: (tx, after: DroppedSet | undefined) => readDroppedSets(tx, { after, batchSize }),
    work: async (aggregate, sets) => {
      for (const set of sets) {
        await deleteInGroup(run, aggregate, (tx) => deleteDroppedBoxes(tx, set, batchSize));
      }
    },
  });
}

async function deleteDueCertificates({ context, signal, now }: JobRun): Promise<void> {
  await forEachAggregate(context, signal, {
    ...{ job: jobName, task: 'certificates', aggregateOf },
    find: (tx, after: DueCertificate | undefined) =>
      readDueCertificates(tx, { now, after, batchSize }),
    work: (aggregate, due) => {
      const [{ groupId }] = due;
      const ids = due.map(({ id }) => id);
      return context.storage.write(aggregate, (tx) =>
        deleteCertificates(tx, groupId, { ids, now }),
      );
    },
  });
}
