import type { Job } from '../context.ts';
import { deleteRequestsBefore, oldestRequest } from './account-store.ts';
import { deleteInvite, firstExpiry, readExpired } from './invite-store.ts';
import { registrations } from './rights.ts';

/** Rows removed at once. */
const batchSize = 100;
/** Seconds for which an invite that expired is still listed. */
const listedAfter = 2_592_000;

/** Removes requests that the operator did not answer, and invites that expired a month ago. */
export const registrationJob: Job = {
  name: 'registration',
  deletes: true,
  async run({ clock, limits, storage }, signal) {
    const period = limits.registrationRequestPeriod;
    const now = clock.now();
    let deleted = batchSize;
    while (deleted === batchSize && !signal.aborted) {
      deleted = await storage.write(registrations, (tx) =>
        deleteRequestsBefore(tx, now - period, batchSize),
      );
    }
    for (deleted = batchSize; deleted === batchSize && !signal.aborted; ) {
      deleted = await storage.write(registrations, async (tx) => {
        const expired = await readExpired(tx, now - listedAfter, batchSize);
        for (const id of expired) await deleteInvite(tx, id);
        return expired.length;
      });
    }
    return await storage.read(async (tx) => {
      const asked = (await oldestRequest(tx)) ?? Number.POSITIVE_INFINITY;
      const expiry = (await firstExpiry(tx)) ?? Number.POSITIVE_INFINITY;
      const next = Math.min(asked + period, expiry + listedAfter + 1);
      return Number.isFinite(next) ? next : undefined;
    });
  },
};
