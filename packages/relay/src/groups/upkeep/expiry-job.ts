import type { Job } from '../../context.ts';
import type { Notice } from '../../dispatch/notice.ts';
import { forEachAggregate, nextRun } from '../../jobs/for-each-aggregate.ts';
import type { Writer } from '../../storage/types.ts';
import { readMembers } from '../chain/group-store.ts';
import { applicationsNotice, recoveriesNotice } from '../chain/notices.ts';
import { aggregateOf, batchSize, deleteEverywhere, deleteInGroup, type JobRun } from './batches.ts';
import {
  clearStaging,
  type Due,
  deleteApplicationsOf,
  deleteEndedInvites,
  deleteExpiredRecoveries,
  endInvites,
  nextExpiry,
  readEndedInvites,
  readExpiredInvites,
  readExpiredRecoveries,
  readExpiredStagings,
} from './expiry-store.ts';

/** Seconds for which an invitation is stored after the end of its period, whatever ended it. */
const forgetAfter = 604_800;

/** A write that stores something with an end wakes this job. */
export const expiryJobName = 'groups.expiry';

/**
 * Ends invitations and recovery requests when their time comes, and notifies the accounts that see
 * their lists (05 §15.3, §15.4); ends staged rotations (05 §13.26); then deletes what no call can
 * use any more.
 */
export const expiryJob: Job = {
  name: expiryJobName,
  deletes: true,
  async run(context, signal) {
    const { clock, storage } = context;
    const now = clock.now();
    const run = { context, signal, now };
    await endDue(run, { task: 'invitations', find: readExpiredInvites, end: endDueInvites });
    await endDue(run, { task: 'recovery', find: readExpiredRecoveries, end: endDueRecoveries });
    await endDue(run, { task: 'rotations', find: readExpiredStagings, end: endDueStaging });
    await deleteApplications(run);
    await deleteEverywhere(run, (tx) => deleteEndedInvites(tx, now - forgetAfter, batchSize));
    const next = await storage.read((tx) => nextExpiry(tx, { now, forgetAfter }));
    return nextRun(context, expiryJobName, next);
  },
};

/** Ends what is due in one group, in its transaction; returns the notices to publish. */
type End = (
  tx: Writer,
  groupId: string,
  due: { readonly ids: readonly string[]; readonly now: number },
) => Promise<readonly Notice[]>;

async function endDue(
  { context, signal, now }: JobRun,
  {
    task,
    find,
    end,
  }: { readonly task: string; readonly find: typeof readExpiredInvites; readonly end: End },
): Promise<void> {
  const { bus, storage } = context;
  await forEachAggregate(context, signal, {
    ...{ job: expiryJobName, task, aggregateOf },
    find: (tx, after: Due | undefined) => find(tx, { now, after, batchSize }),
    work: async (aggregate, due) => {
      const [{ groupId }] = due;
      const ids = due.map(({ id }) => id);
      bus.publish(await storage.write(aggregate, (tx) => end(tx, groupId, { ids, now })));
    },
  });
}

const endDueInvites: End = async (tx, groupId, { ids: inviteIds, now }) =>
  (await endInvites(tx, groupId, { inviteIds, now }))
    ? [await applicationsNotice(tx, groupId)]
    : [];

const endDueRecoveries: End = async (tx, groupId, { ids, now }) => {
  const accounts = await deleteExpiredRecoveries(tx, groupId, { accounts: ids, now });
  if (accounts.length === 0) return [];
  // Leaving deletes an account's request, so all of these accounts are members.
  const members = await readMembers(tx, groupId, accounts);
  const requesters = [...members.values()].map(({ account, role }) => {
    return { account, role, isMember: true };
  });
  return [await recoveriesNotice(tx, groupId, requesters)];
};

/** A rotation is announced only when it is committed; its end is not announced. */
const endDueStaging: End = async (tx, groupId, { now }) => {
  await clearStaging(tx, groupId, now);
  return [];
};

/** Deletes applications of ended invitations: they are in no list and only take space. */
async function deleteApplications(run: JobRun): Promise<void> {
  await forEachAggregate(run.context, run.signal, {
    ...{ job: expiryJobName, task: 'applications', aggregateOf },
    find: (tx, after: Due | undefined) => readEndedInvites(tx, { after, batchSize }),
    work: async (aggregate, ended) => {
      for (const invite of ended) {
        await deleteInGroup(run, aggregate, (tx) => deleteApplicationsOf(tx, invite, batchSize));
      }
    },
  });
}
