/** For whom stored bytes count, and which limits of a day they have (02 §18). */
import type { StoredBytes } from '../context.ts';
import type { RelayLimits } from '../limits.ts';

/** One for whom bytes count. */
export interface Owner {
  /** Kind and ID. */
  readonly key: string;
  /** The account, if that is what it is: its bytes count for its total as well. */
  readonly account?: string;
}

/** All other relays together. */
export const foreign: Owner = { key: 'foreign' };

/** A limit of what an owner stores in a day. */
interface DayLimit {
  readonly key: string;
  /** Bytes. */
  readonly limit: number;
  /** The beginning of the sentence that refuses more. */
  readonly what: string;
}

/** Returns the owner's key of what an account receives from all other relays, or from one of them. */
export function inboxOf(recipient: string, relay?: string): string {
  return relay === undefined ? `inbox ${recipient}` : `inbox ${recipient} ${relay}`;
}

/** Returns the limits of a day that a call or delivery has to keep, without those that relays share. */
export function limitsOf(limits: RelayLimits, stored: StoredBytes): readonly DayLimit[] {
  const { account, group, channel } = stored;
  const own = limits.accountDailyBytes;
  const all = [{ key: `account ${account}`, limit: own, what: 'the account stored' }];
  if (group !== undefined) {
    const limit = limits.groupDailyBytes;
    all.push({ key: `group ${group}`, limit, what: 'members of the group sent' });
  }
  if (channel !== undefined) {
    const limit = limits.channelDailyBytes;
    all.push({ key: `channel ${channel}`, limit, what: 'the channel got' });
  }
  return all;
}

/**
 * Returns for whom the bytes of a call or delivery count.
 *
 * @param isNew false for a repeat, which stored nothing: it counts for its account and relay only
 */
export function ownersOf(stored: StoredBytes, isNew: boolean): readonly Owner[] {
  const { account, relay, recipient, group, channel } = stored;
  const owners: Owner[] = [{ key: `account ${account}`, account }];
  if (relay !== undefined) owners.push({ key: `relay ${relay}` }, foreign);
  if (!isNew) return owners;
  if (recipient !== undefined) {
    owners.push({ key: inboxOf(recipient) }, { key: inboxOf(recipient, relay) });
  }
  if (group !== undefined) owners.push({ key: `group ${group}` });
  if (channel !== undefined) owners.push({ key: `channel ${channel}` });
  return owners;
}
