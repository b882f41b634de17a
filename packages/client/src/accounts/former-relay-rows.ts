/** Relays that the account left, while they may have records that this device did not read. */
import { Collection } from '../store/collection.ts';
import type { StoreWriter } from '../store/index.ts';
import { timelines } from './account-rows.ts';

/** A former relay, by relay ID; the row is deleted when its timeline is read to the end. */
export interface FormerRelay {
  /** Unix milliseconds at which this device learned that the account left. */
  readonly since: number;
  /** Reads in a row that failed. */
  readonly failures: number;
  /** Unix milliseconds of the next read. */
  readonly retryAt: number;
}
export const formerRelays = new Collection<FormerRelay>('former-relays');

/**
 * Stores that the account's home changed. Every relay with a timeline is read again, not only the
 * one that was left: between two routes that this device knows, another device may have moved the
 * account back and forth.
 */
export async function noteHomeChange(
  tx: StoreWriter,
  { left, home, now }: { readonly left: string; readonly home: string; readonly now: number },
): Promise<void> {
  if ((await timelines.get(tx, left)) === undefined) {
    await timelines.put(tx, left, { position: -1, gap: false });
  }
  for (const { key: relayId } of await timelines.list(tx)) {
    if (relayId === home) await formerRelays.delete(tx, relayId);
    else await formerRelays.put(tx, relayId, { since: now, failures: 0, retryAt: now });
  }
}
