import type { Job } from '../context.ts';
import { deliveriesCounted } from '../observability/events.ts';
import { readWaitingMessages, type WaitingMessage } from './waiting-mail.ts';

/** Messages read at once. */
const batchSize = 1_000;

/** Seconds between two runs. */
const interval = 60;

/**
 * Counts the delivery queue for the metrics `deliveries_waiting` and `delivery_age_seconds`: page by
 * page, so that no other read waits for it, and up to `countedDeliveries`.
 */
export const waitingMailJob: Job = {
  name: 'messages.waiting-mail',
  async run(context, signal) {
    const { clock, limits, storage } = context;
    const now = clock.now();
    let waiting = 0;
    let oldest = now;
    for (let after: WaitingMessage | undefined; waiting < limits.countedDeliveries; ) {
      const limit = Math.min(batchSize, limits.countedDeliveries - waiting);
      const page = await storage.read((tx) => readWaitingMessages(tx, { after, limit }));
      for (const { acceptedAt } of page) oldest = Math.min(oldest, acceptedAt);
      waiting += page.length;
      after = page.at(-1);
      if (signal.aborted || after === undefined) break;
    }
    if (!signal.aborted) deliveriesCounted(context, { waiting, age: now - oldest });
    return now + interval;
  },
};
