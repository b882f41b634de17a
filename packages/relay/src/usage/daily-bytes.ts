import { ProtocolError } from '@posthouse/protocol';
import { BoundedMap } from '../bounded-map.ts';
import type { DailyBytes, RelayContext, StoredBytes } from '../context.ts';
import { dailyBytesNotSaved } from '../observability/usage-events.ts';
import { addBytes } from './store.ts';

export const secondsOfDay = 86_400;
/** Bytes of an owner that a process counts in memory alone: a crash forgets them. */
const unsavedBytes = 1_048_576;
/** Bytes that are saved when an owner is forgotten; fewer are forgotten with it. */
const keptBytes = 65_536;
/**
 * Owners whose count is in memory, about 300 bytes each: a key is an ID with its kind, 60 characters at
 * most.
 */
const rememberedOwners = 10_000;
/** Owners who stored at least {@link unsavedBytes} today, so 50 GB in all; as large each. */
const rememberedLargeOwners = 50_000;

/** What one owner stored today, as far as this process knows. */
interface Count {
  readonly owner: string;
  /** By all processes, when it was last saved. */
  saved: number;
  /** By this process since then. */
  unsaved: number;
}

type Parts = Pick<RelayContext, 'clock' | 'limits' | 'log' | 'storage'>;

/**
 * Counts the bytes that accounts store in a day (UTC), and those sent to a group and a channel. A count
 * is in memory, and in storage after each MiB, so that the calls of most owners take no statement
 * more; what other processes counted is learned when a count is saved. Owners who stored a MiB are not
 * forgotten before the day ends, however many others there are.
 */
export class DailyByteCounts implements DailyBytes {
  readonly #context: Parts;
  readonly #small: BoundedMap<string, Count>;
  readonly #large = new BoundedMap<string, Count>(rememberedLargeOwners);
  readonly #smallOwners: number;
  #day = 0;
  /** Whether the last count could not be saved. */
  #isFailing = false;

  constructor(context: Parts, smallOwners: number = rememberedOwners) {
    this.#context = context;
    this.#smallOwners = smallOwners;
    this.#small = new BoundedMap(smallOwners);
  }

  require({ account, group, channel, isLimited }: StoredBytes): void {
    const { limits } = this.#context;
    if (!isLimited) return;
    this.#forgetYesterday();
    this.#requireBelow(`account ${account}`, limits.accountDailyBytes, 'the account stored');
    if (group !== undefined) {
      this.#requireBelow(`group ${group}`, limits.groupDailyBytes, 'members of the group sent');
    }
    if (channel !== undefined) {
      this.#requireBelow(`channel ${channel}`, limits.channelDailyBytes, 'the channel got');
    }
  }

  add({ account, group, channel, bytes }: StoredBytes, isNew: boolean): Promise<void> | undefined {
    this.#forgetYesterday();
    const toSave = [...this.#count(`account ${account}`, bytes)];
    if (isNew && group !== undefined) toSave.push(...this.#count(`group ${group}`, bytes));
    if (isNew && channel !== undefined) toSave.push(...this.#count(`channel ${channel}`, bytes));
    return toSave.length === 0 ? undefined : this.#save(toSave);
  }

  #requireBelow(owner: string, limit: number, what: string): void {
    const count = this.#known(owner);
    if (count === undefined || count.saved + count.unsaved < limit) return;
    const wait = (this.#day + 1) * secondsOfDay - this.#context.clock.now();
    throw new ProtocolError('rate_limited', `${what} too many bytes today: try again tomorrow`, {
      data: { retry_after: wait },
    });
  }

  #known(owner: string): Count | undefined {
    return this.#large.get(owner) ?? this.#small.get(owner);
  }

  /** Counts bytes of an owner; returns the counts that have to be saved, also that of a forgotten owner. */
  #count(owner: string, bytes: number): readonly Count[] {
    const count = this.#known(owner) ?? { owner, saved: 0, unsaved: 0 };
    const forgotten = this.#large.peek(owner) === undefined ? this.#remember(count) : undefined;
    count.unsaved += bytes;
    const due = count.unsaved >= unsavedBytes ? [count] : [];
    return forgotten !== undefined && forgotten.unsaved >= keptBytes ? [...due, forgotten] : due;
  }

  /** Returns the owner that is forgotten instead, if any. */
  #remember(count: Count): Count | undefined {
    const isFull =
      this.#small.peek(count.owner) === undefined && this.#small.size === this.#smallOwners;
    const [oldest] = isFull ? this.#small.entries() : [];
    this.#small.set(count.owner, count);
    return oldest?.[1];
  }

  #forgetYesterday(): void {
    const day = Math.floor(this.#context.clock.now() / secondsOfDay);
    if (day === this.#day) return;
    this.#day = day;
    this.#small.clear();
    this.#large.clear();
  }

  /** What cannot be saved now is tried again with the owner's next call: the call was made. */
  async #save(counts: readonly Count[]): Promise<void> {
    const day = this.#day;
    for (const count of counts) {
      const { owner, unsaved: bytes } = count;
      count.unsaved = 0;
      count.saved += bytes;
      // Until the day ends it is known what a large owner stored, also if it cannot be saved.
      if (count.saved >= unsavedBytes) this.#keep(count, day);
      try {
        const total = await this.#context.storage.write(`daily ${owner}`, (tx) =>
          addBytes(tx, { owner, day, bytes }),
        );
        // Another call may have added to it meanwhile.
        count.saved = Math.max(count.saved, total);
        if (count.saved >= unsavedBytes) this.#keep(count, day);
        this.#isFailing = false;
      } catch (error) {
        count.unsaved += bytes;
        count.saved -= bytes;
        if (!this.#isFailing) dailyBytesNotSaved(this.#context, error);
        this.#isFailing = true;
      }
    }
  }

  #keep(count: Count, day: number): void {
    // The day may have ended while the count was saved, and the owner may be counted anew.
    if (day !== this.#day || this.#large.peek(count.owner) !== undefined) return;
    const anew = this.#small.peek(count.owner);
    if (anew !== undefined && anew !== count) count.unsaved += anew.unsaved;
    this.#small.delete(count.owner);
    this.#large.set(count.owner, count);
  }
}
