import { ProtocolError } from '@posthouse/protocol';
import { BoundedMap } from '../bounded-map.ts';
import type { DailyBytes, RelayContext, StoredBytes } from '../context.ts';
import { addBytes } from './store.ts';

export const secondsOfDay = 86_400;
/** Bytes of an owner that a process counts in memory alone: a crash forgets them. */
const unsavedBytes = 1_048_576;
/** Owners whose count is in memory; about 200 bytes each. */
const rememberedOwners = 10_000;

/** What one owner stored on one day, as far as this process knows. */
interface Count {
  readonly day: number;
  /** By all processes, when it was last saved. */
  saved: number;
  /** By this process since then. */
  unsaved: number;
}

/**
 * Counts the bytes that accounts store in a day (UTC), and those stored in a group and a channel. A count
 * is in memory, and in storage after each MiB, so that the calls of most owners take no statement
 * more; what other processes counted is learned when a count is saved.
 */
export class DailyByteCounts implements DailyBytes {
  readonly #context: Pick<RelayContext, 'clock' | 'limits' | 'storage'>;
  readonly #counts = new BoundedMap<string, Count>(rememberedOwners);

  constructor(context: Pick<RelayContext, 'clock' | 'limits' | 'storage'>) {
    this.#context = context;
  }

  require({ account, group, channel, isRefused, isContent }: StoredBytes): void {
    const { limits } = this.#context;
    if (!isRefused) return;
    this.#requireBelow(`account ${account}`, limits.accountDailyBytes, 'the account stored');
    if (!isContent) return;
    if (group !== undefined) {
      this.#requireBelow(`group ${group}`, limits.groupDailyBytes, 'members of the group sent');
    }
    if (channel !== undefined) {
      this.#requireBelow(`channel ${channel}`, limits.channelDailyBytes, 'the channel got');
    }
  }

  add({ account, group, channel, bytes }: StoredBytes): Promise<void> | undefined {
    const full = [
      `account ${account}`,
      ...(group === undefined ? [] : [`group ${group}`]),
      ...(channel === undefined ? [] : [`channel ${channel}`]),
    ].filter((owner) => {
      const count = this.#countOf(owner);
      count.unsaved += bytes;
      return count.unsaved >= unsavedBytes;
    });
    return full.length === 0 ? undefined : this.#save(full);
  }

  #requireBelow(owner: string, limit: number, what: string): void {
    const { saved, unsaved, day } = this.#countOf(owner);
    if (saved + unsaved < limit) return;
    const wait = (day + 1) * secondsOfDay - this.#context.clock.now();
    throw new ProtocolError('rate_limited', `${what} too many bytes today: try again tomorrow`, {
      data: { retry_after: wait },
    });
  }

  #countOf(owner: string): Count {
    const day = Math.floor(this.#context.clock.now() / secondsOfDay);
    const known = this.#counts.get(owner);
    if (known?.day === day) return known;
    const count = { day, saved: 0, unsaved: 0 };
    this.#counts.set(owner, count);
    return count;
  }

  /** What cannot be saved now is tried again with the owner's next call: calls do not fail of it. */
  async #save(owners: readonly string[]): Promise<void> {
    for (const owner of owners) {
      const count = this.#countOf(owner);
      const { day, unsaved: bytes } = count;
      if (bytes < unsavedBytes) continue;
      count.unsaved = 0;
      count.saved += bytes;
      try {
        const total = await this.#context.storage.write(`daily ${owner}`, (tx) =>
          addBytes(tx, { owner, day, bytes }),
        );
        // Another call may have added to it meanwhile.
        count.saved = Math.max(count.saved, total);
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        count.unsaved += bytes;
        count.saved -= bytes;
      }
    }
  }
}
