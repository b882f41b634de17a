import type { Notice } from '../call.ts';
import type { Job, RelayContext } from '../context.ts';
import type { Writer } from '../storage/types.ts';
import {
  deleteDeadApplications,
  deleteExpiredRecoveries,
  deleteInvites,
  type Expired,
  endInvites,
  nextExpiry,
  readDeadInvite,
  readExpiredInvites,
  readExpiredRecoveries,
} from './expiry-store.ts';
import { readMembers } from './group-store.ts';
import { applicationsNotice, recoveriesNotice } from './notices.ts';
import {
  deleteDroppedBoxes,
  deleteExpiredEpochs,
  deleteExpiredMessages,
  deleteExpiredSent,
  nextRetentionDeadline,
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
 * (05 §15.3, §15.4); then clears away what nothing can use any more.
 */
export const expiryJob: Job = {
  name: expiryJobName,
  async run(context, signal) {
    const { clock, storage } = context;
    await eachDue(context, signal, { find: readExpiredInvites, end: endDueInvites });
    await eachDue(context, signal, { find: readExpiredRecoveries, end: endDueRecoveries });
    await clearApplications(context, signal);
    const before = clock.now() - forgetAfter;
    await inPortions(context, signal, (tx) => deleteInvites(tx, before, portion));
    return await storage.read((tx) => nextExpiry(tx, forgetAfter));
  },
};

/** Ends what is due of one group, in its transaction; says what connections must hear of it. */
type EndDue = (
  tx: Writer,
  groupId: string,
  due: { readonly ids: readonly string[]; readonly now: number },
) => Promise<readonly Notice[]>;

async function eachDue(
  { bus, clock, storage }: RelayContext,
  signal: AbortSignal,
  { find, end }: { readonly find: typeof readExpiredInvites; readonly end: EndDue },
): Promise<void> {
  for (;;) {
    const now = clock.now();
    const due = await storage.read((tx) => find(tx, now, portion));
    for (const [groupId, some] of Map.groupBy(due, (one: Expired) => one.groupId)) {
      if (signal.aborted) return;
      const ids = some.map(({ id }) => id);
      bus.publish(await storage.write(`group:${groupId}`, (tx) => end(tx, groupId, { ids, now })));
    }
    if (due.length < portion) return;
  }
}

const endDueInvites: EndDue = async (tx, groupId, { ids: inviteIds, now }) =>
  (await endInvites(tx, groupId, { inviteIds, now }))
    ? [await applicationsNotice(tx, groupId)]
    : [];

const endDueRecoveries: EndDue = async (tx, groupId, { ids, now }) => {
  const accounts = await deleteExpiredRecoveries(tx, groupId, { accounts: ids, now });
  if (accounts.length === 0) return [];
  // Leaving would have removed them: whose they are is a member.
  const members = await readMembers(tx, groupId, accounts);
  const requesters = [...members.values()].map(({ account, role }) => {
    return { account, role, isMember: true };
  });
  return [await recoveriesNotice(tx, groupId, requesters)];
};

/** Applications of dead invitations are in no list; they only take room. */
async function clearApplications({ storage }: RelayContext, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const dead = await storage.read(readDeadInvite);
    if (dead === undefined) return;
    await storage.write(`group:${dead.groupId}`, (tx) => deleteDeadApplications(tx, dead, portion));
  }
}

/** Removes what has been kept as long as was promised at its acceptance (05 §11.2, §11.3). */
export const retentionJob: Job = {
  name: 'groups.retention',
  async run(context, signal) {
    const { clock, storage } = context;
    const now = clock.now();
    await inPortions(context, signal, (tx) => deleteExpiredMessages(tx, now, portion));
    await inPortions(context, signal, (tx) => deleteExpiredSent(tx, now, portion));
    await removeEpochs(context, signal, now);
    await inPortions(context, signal, (tx) => deleteDroppedBoxes(tx, portion));
    return await storage.read(nextRetentionDeadline);
  },
};

async function removeEpochs(
  { storage }: RelayContext,
  signal: AbortSignal,
  now: number,
): Promise<void> {
  for (;;) {
    const groups = await storage.read((tx) => readExpiredEpochs(tx, now, portion));
    for (const groupId of groups) {
      if (signal.aborted) return;
      await storage.write(`group:${groupId}`, (tx) =>
        deleteExpiredEpochs(tx, groupId, { now, portion }),
      );
    }
    if (groups.length === 0) return;
  }
}

/** Until a portion was not full, or there is nothing. */
async function inPortions(
  { storage }: RelayContext,
  signal: AbortSignal,
  remove: (tx: Writer) => Promise<number>,
): Promise<void> {
  while (!signal.aborted) {
    if ((await storage.write('groups.jobs', remove)) === 0) return;
  }
}
