/** How many accounts one client address brings to this relay in a day (02 §5). */
import { ProtocolError } from '@posthouse/protocol';
import type { Job, RelayContext } from '../context.ts';
import type { Writer } from '../storage/types.ts';
import {
  deleteArrivalsBefore,
  firstArrivalDay,
  readArrivals,
  writeArrivals,
} from './arrival-store.ts';

const secondsOfDay = 86_400;
/** Rows removed at once. */
const batchSize = 200;

/**
 * Counts an account that comes to be at home here, in the transaction that stores its route.
 * The write must hold the aggregate of the address.
 *
 * @throws ProtocolError `rate_limited` with the seconds until the next day
 */
export async function countArrival(
  { limits }: Pick<RelayContext, 'limits'>,
  tx: Writer,
  { address, now }: { readonly address: string; readonly now: number },
): Promise<void> {
  const day = Math.floor(now / secondsOfDay);
  const accounts = await readArrivals(tx, { address, day });
  if (accounts >= limits.accountsPerAddress) {
    const data = { retry_after: (day + 1) * secondsOfDay - now };
    const text = 'too many accounts came to this relay from this address today: try tomorrow';
    throw new ProtocolError('rate_limited', text, { data });
  }
  await writeArrivals(tx, { address, day, accounts: accounts + 1 });
}

/** Removes the counts of earlier days, with their addresses. */
export const arrivalsJob: Job = {
  name: 'accounts.arrivals',
  deletes: true,
  async run({ clock, storage }, signal) {
    const today = Math.floor(clock.now() / secondsOfDay);
    let deleted = batchSize;
    while (deleted === batchSize && !signal.aborted) {
      deleted = await storage.write(this.name, (tx) => deleteArrivalsBefore(tx, today, batchSize));
    }
    const first = await storage.read(firstArrivalDay);
    return (Math.max(today, first ?? today) + 1) * secondsOfDay;
  },
};
