import type { Job, RelayContext } from '../../context.ts';
import type { Notice } from '../../dispatch/notice.ts';
import { forEachAggregate, nextRun } from '../../jobs/for-each-aggregate.ts';
import type { Writer } from '../../storage/types.ts';
import { readMembers } from '../chain/group-store.ts';
import { applicationsNotice, recoveriesNotice } from '../chain/notices.ts';
import {
  clearStaging,
  type Due,
  deleteDeadApplications,
  deleteExpiredRecoveries,
  deleteInvites,
  endInvites,
  nextExpiry,
  readDeadInvites,
  readExpiredInvites,
  readExpiredRecoveries,
  readExpiredStagings,
} from './expiry-store.ts';
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

/** Rows removed, or changed, in one transaction. */
const portion = 200;

/** Seconds for which an invitation stays behind the end of its period, whatever ended it. */
const forgetAfter = 604_800;

/** Whoever stores something with an end wakes it. */
export const expiryJobName = 'groups.expiry';

/**
 * Ends invitations and recovery requests when their time comes, and tells who sees their lists
 * (05 §15.3, §15.4); ends staged rotations (05 §13.26); then clears away what nothing can use any
 * more.
 */
export const expiryJob: Job = {
  name: expiryJobName,
  async run(context, signal) {
    const { clock, storage } = context;
    const now = clock.now();
    const run = { context, signal, now };
    await endDue(run, { task: 'invitations', find: readExpiredInvites, end: endDueInvites });
    await endDue(run, { task: 'recovery', find: readExpiredRecoveries, end: endDueRecoveries });
    await endDue(run, { task: 'rotations', find: readExpiredStagings, end: endDueStaging });
    await clearApplications(run);
    await inPortions(run, (tx) => deleteInvites(tx, now - forgetAfter, portion));
    const next = await storage.read((tx) => nextExpiry(tx, { now, forgetAfter }));
    return nextRun(context, expiryJobName, next);
  },
};

/** A run of a job. */
interface Run {
  readonly context: RelayContext;
  readonly signal: AbortSignal;
  /** What is due by then, Unix seconds. */
  readonly now: number;
}

/** Ends what is due of one group, in its transaction; says what connections must hear of it. */
type End = (
  tx: Writer,
  groupId: string,
  due: { readonly ids: readonly string[]; readonly now: number },
) => Promise<readonly Notice[]>;

async function endDue(
  { context, signal, now }: Run,
  {
    task,
    find,
    end,
  }: { readonly task: string; readonly find: typeof readExpiredInvites; readonly end: End },
): Promise<void> {
  const { bus, storage } = context;
  await forEachAggregate(context, signal, {
    ...{ job: expiryJobName, task, ownerOf },
    find: (tx, after: Due | undefined) => find(tx, { now, after, portion }),
    work: async (owner, due) => {
      const [{ groupId }] = due;
      const ids = due.map(({ id }) => id);
      bus.publish(await storage.write(owner, (tx) => end(tx, groupId, { ids, now })));
    },
  });
}

const ownerOf = ({ groupId }: { readonly groupId: string }) => `group:${groupId}`;

const endDueInvites: End = async (tx, groupId, { ids: inviteIds, now }) =>
  (await endInvites(tx, groupId, { inviteIds, now }))
    ? [await applicationsNotice(tx, groupId)]
    : [];

const endDueRecoveries: End = async (tx, groupId, { ids, now }) => {
  const accounts = await deleteExpiredRecoveries(tx, groupId, { accounts: ids, now });
  if (accounts.length === 0) return [];
  // Leaving would have removed them: whose they are is a member.
  const members = await readMembers(tx, groupId, accounts);
  const requesters = [...members.values()].map(({ account, role }) => {
    return { account, role, isMember: true };
  });
  return [await recoveriesNotice(tx, groupId, requesters)];
};

/** Nothing of a rotation is told before it is committed, and nothing of its end. */
const endDueStaging: End = async (tx, groupId, { now }) => {
  await clearStaging(tx, groupId, now);
  return [];
};

/** Applications of dead invitations are in no list; they only take room. */
async function clearApplications({ context, signal }: Run): Promise<void> {
  await forEachAggregate(context, signal, {
    ...{ job: expiryJobName, task: 'applications', ownerOf },
    find: (tx, after: Due | undefined) => readDeadInvites(tx, { after, portion }),
    work: async (owner, due) => {
      for (const dead of due) {
        await untilLess(context, { owner, signal }, (tx) =>
          deleteDeadApplications(tx, dead, portion),
        );
      }
    },
  });
}

const retentionJobName = 'groups.retention';

/** Removes what has been kept as long as was promised at its acceptance (05 §11.2, §11.3). */
export const retentionJob: Job = {
  name: retentionJobName,
  async run(context, signal) {
    const { clock, storage } = context;
    const now = clock.now();
    const run = { context, signal, now };
    await inPortions(run, (tx) => deleteExpiredMessages(tx, now, portion));
    await inPortions(run, (tx) => deleteExpiredSent(tx, now, portion));
    await removeEpochs(run);
    await removeBoxes(run);
    await removeCertificates(run);
    const next = await storage.read((tx) => nextRetentionDeadline(tx, now));
    return nextRun(context, retentionJobName, next);
  },
};

async function removeEpochs({ context, signal, now }: Run): Promise<void> {
  await forEachAggregate(context, signal, {
    ...{ job: retentionJobName, task: 'epochs', ownerOf },
    find: (tx, after: DueEpoch | undefined) => readExpiredEpochs(tx, { now, after, portion }),
    work: (owner, [{ groupId }]) =>
      untilLess(context, { owner, signal }, (tx) =>
        deleteExpiredEpochs(tx, groupId, { now, portion }),
      ),
  });
}

async function removeBoxes({ context, signal }: Run): Promise<void> {
  await forEachAggregate(context, signal, {
    ...{ job: retentionJobName, task: 'boxes', ownerOf },
    find: (tx, after: DroppedSet | undefined) => readDroppedSets(tx, { after, portion }),
    work: async (owner, sets) => {
      for (const set of sets) {
        await untilLess(context, { owner, signal }, (tx) => deleteDroppedBoxes(tx, set, portion));
      }
    },
  });
}

async function removeCertificates({ context, signal, now }: Run): Promise<void> {
  await forEachAggregate(context, signal, {
    ...{ job: retentionJobName, task: 'certificates', ownerOf },
    find: (tx, after: DueCertificate | undefined) =>
      readDueCertificates(tx, { now, after, portion }),
    work: (owner, due) => {
      const [{ groupId }] = due;
      const ids = due.map(({ id }) => id);
      return context.storage.write(owner, (tx) => deleteCertificates(tx, groupId, { ids, now }));
    },
  });
}

/** Of one group, until a portion was not full. */
async function untilLess(
  { storage }: RelayContext,
  { owner, signal }: { readonly owner: string; readonly signal: AbortSignal },
  remove: (tx: Writer) => Promise<number>,
): Promise<void> {
  while (!signal.aborted && (await storage.write(owner, remove)) === portion);
}

/** Of all groups, until there is nothing. */
async function inPortions(
  { context, signal }: Run,
  remove: (tx: Writer) => Promise<number>,
): Promise<void> {
  while (!signal.aborted) {
    if ((await context.storage.write('groups.jobs', remove)) === 0) return;
  }
}
