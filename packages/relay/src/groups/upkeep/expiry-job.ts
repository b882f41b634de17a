import type { Job } from '../../context.ts';
import type { Notice } from '../../dispatch/notice.ts';
import { forEachAggregate, nextRun } from '../../jobs/for-each-aggregate.ts';
import type { Reader, Writer } from '../../storage/types.ts';
import { readAccounts } from '../chain/group-store.ts';
import { applicationsNotice, type Requester, recoveriesNotice } from '../chain/notices.ts';
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
/** Comes after every ID, which are ASCII without `~`. */
const afterIds = '~';

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
  // What has expired serves no call any more, stored or not; clients read their lists again.
  async runPaused(context, signal, since) {
    const now = context.clock.now();
    const run = { context, signal, now };
    await announce(run, { task: 'invitations', find: readExpiredInvites, since, make: ofInvites });
    await announce(run, { task: 'recovery', find: readExpiredRecoveries, since, make: ofRequests });
    const next = await context.storage.read((tx) => nextExpiry(tx, { now, forgetAfter }));
    return nextRun(context, expiryJobName, next);
  },
};

/** Makes the notice of a group's records that have expired. */
type MakeNotice = (tx: Reader, groupId: string, ids: readonly string[]) => Promise<Notice>;

const ofInvites: MakeNotice = applicationsNotice;

const ofRequests: MakeNotice = async (tx, groupId, accounts) =>
  await recoveriesNotice(tx, groupId, await requestersOf(tx, groupId, accounts));

/** Publishes the notices of records that expired after `since`, and leaves the records stored. */
async function announce(
  { context, signal, now }: JobRun,
  options: {
    readonly task: string;
    readonly find: typeof readExpiredInvites;
    readonly since: number | undefined;
    readonly make: MakeNotice;
  },
): Promise<void> {
  const { bus, storage } = context;
  const { task, find, since = Number.MIN_SAFE_INTEGER, make } = options;
  const first: Due = { deadline: since, groupId: afterIds, id: afterIds };
  await forEachAggregate(context, signal, {
    ...{ job: expiryJobName, task, aggregateOf },
    find: (tx, after: Due = first) => find(tx, { now, after, batchSize }),
    work: async (_, due) => {
      const ids = due.map(({ id }) => id);
      bus.publish([await storage.read((tx) => make(tx, due[0].groupId, ids))]);
    },
  });
}

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
  return [await recoveriesNotice(tx, groupId, await requestersOf(tx, groupId, accounts))];
};

/** Leaving deletes an account's request, so all accounts with a request are members. */
async function requestersOf(
  tx: Reader,
  groupId: string,
  accounts: readonly string[],
): Promise<Requester[]> {
  const { members } = await readAccounts(tx, groupId, accounts);
  return [...members.values()].map(({ account, role }) => ({ account, role, isMember: true }));
}

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
