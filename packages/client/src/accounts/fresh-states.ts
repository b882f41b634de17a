/** Device states that are recent enough to seal a message for (03 §13.2, 04 §7.4). */
import type { AccountDeviceState } from '@posthouse/protocol';
import type { AccountCore } from '../core.ts';
import { isClientError, RelayUnreachable } from '../errors.ts';
import { deviceStates, stateHints } from './account-rows.ts';

/** Milliseconds for which a state is used without a new read, unless a hint arrives. */
const freshFor = 60_000;
/** Milliseconds for which a state is used if a new read fails. */
export const usableFor = 3_600_000;
/** Milliseconds that a message waits for the read of a state that may be used without it. */
const readLimit = 5_000;

/**
 * Returns an account's state, read within the last minute: a device added since then is missed
 * otherwise. If a read fails or takes long, the known state serves, and is read again after a
 * minute; a state older than an hour, or older than a hint, does not.
 *
 * @param read.usableFor milliseconds for which a state serves if the read fails
 * @throws the error of the read if no known state serves
 */
export async function freshState(
  core: AccountCore,
  account: string,
  read: {
    readonly resolve: (signal: AbortSignal) => Promise<AccountDeviceState>;
    readonly usableFor: number;
    readonly signal: AbortSignal;
  },
): Promise<AccountDeviceState> {
  const { clock, stateReads, store } = core;
  const { resolve, signal } = read;
  const record = await store.read(async (tx) =>
    (await stateHints.get(tx, account)) === undefined
      ? await deviceStates.get(tx, account)
      : undefined,
  );
  const now = clock.milliseconds();
  const isWithin = (at: number, age: number) => now >= at && now - at < age;
  if (record === undefined || !isWithin(record.checkedAt, read.usableFor)) {
    return await resolve(signal);
  }
  const triedAt = Math.max(record.checkedAt, stateReads.get(account) ?? 0);
  if (isWithin(triedAt, freshFor)) return record.state;
  stateReads.set(account, now);
  const over = new AbortController();
  const isLate = clock.sleep(readLimit, AbortSignal.any([signal, over.signal])).then(
    () => over.abort(new RelayUnreachable('too late', { outcomeUnknown: true })),
    () => undefined,
  );
  try {
    return await resolve(AbortSignal.any([signal, over.signal]));
  } catch (error) {
    if (signal.aborted || !isClientError(error)) throw error;
    return record.state;
  } finally {
    over.abort();
    await isLate;
  }
}
