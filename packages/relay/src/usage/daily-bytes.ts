import { ProtocolError } from '@posthouse/protocol';
import { BoundedMap } from '../bounded-map.ts';
import type { DailyBytes, RelayContext, StoredBytes } from '../context.ts';
import { dailyBytesNotSaved } from '../observability/usage-events.ts';
import type { Reader } from '../storage/types.ts';
import { firstCountedDay, secondsOfDay } from './days.ts';
import { foreign, inboxOf, limitsOf, type Owner, ownersOf } from './owners.ts';
import { addBytes, readTotal } from './store.ts';

/** Bytes of an owner that a process counts in memory alone: a crash forgets them. */
const unsavedBytes = 1_048_576;
/** Bytes that are saved when an owner is forgotten; fewer are forgotten with it. */
const keptBytes = 65_536;
/**
 * Owners whose count is in memory, about 400 bytes each: a key is a kind with one or two IDs, 120
 * characters at most.
 */
const rememberedOwners = 10_000;
/** Owners who stored at least {@link unsavedBytes} today, so 50 GB in all; as large each. */
const rememberedLargeOwners = 50_000;
/** The part of the bytes of all other relays, and of a recipient's, that each relay has in any case. */
const relayShare = 64;
/** The part of a recipient's or relay's bytes that each sender has, until all of them used this reserve. */
const senderShare = 1_024;
const reserveOfSenders = (limit: number) => limit / 4;

/**
 * Bytes of a day above a limit for what removes or ends something, which has to be possible and stores
 * little. It has an end too: events are kept for good.
 */
const removalBytes = (limit: number) => Math.max(1_048_576, limit / 4);

/** What one owner stored today, as far as this process knows. */
interface Count {
  readonly owner: Owner;
  /** By all processes, when it was last saved. */
  saved: number;
  /** By this process since then. */
  unsaved: number;
  /** Of an account, when it was last saved: what counts for its total without `saved`. */
  before: number;
}

/** A limit that the accounts of other relays share. */
interface Shared {
  readonly key: string;
  /** Bytes. */
  readonly limit: number;
  /** The sender. */
  readonly account: string;
  /** Bytes of a day below which a sender sent little; a part of the limit by default. */
  readonly quiet?: number;
}

type Parts = Pick<RelayContext, 'clock' | 'limits' | 'log' | 'storage'>;

/**
 * Counts the bytes that accounts store in a day (UTC), those sent to a group and a channel, those that an
 * account receives from other relays, and those of other relays. A count is in memory, and in storage
 * after each MiB, so that the calls of most owners take no statement more; what other processes counted,
 * and an account's total, are learned when a count is saved. Owners who stored a MiB are not forgotten
 * before the day ends, however many others there are.
 */
export class DailyByteCounts implements DailyBytes {
  readonly #context: Parts;
  readonly #small: BoundedMap<string, Count>;
  readonly #large = new BoundedMap<string, Count>(rememberedLargeOwners);
  /** Who was forgotten when the last owner was remembered. */
  #forgotten: Count | undefined;
  #day = 0;
  /** Whether the last count could not be saved. */
  #isFailing = false;

  constructor(context: Parts, smallOwners: number = rememberedOwners) {
    this.#context = context;
    this.#small = new BoundedMap(smallOwners, {
      evicted: (count) => {
        this.#forgotten = count;
      },
    });
  }

  require(stored: StoredBytes): void {
    this.#forgetYesterday();
    const { limits } = this.#context;
    const { isLimited } = stored;
    for (const { key, limit, what } of limitsOf(limits, stored)) {
      const most = isLimited ? limit : limit + removalBytes(limit);
      if (this.#today(key) >= most) this.#refuse(`${what} too many bytes today`);
    }
    this.#requireOfRelay(stored);
    if (!isLimited) return;
    this.#requireTotal(stored);
    this.#requireOfRecipient(stored);
    this.#requireShare(stored);
  }

  add(stored: StoredBytes, isNew: boolean): Promise<void> | undefined {
    this.#forgetYesterday();
    const toSave = ownersOf(stored, isNew).flatMap((owner) => this.#count(owner, stored.bytes));
    return toSave.length === 0 ? undefined : this.#save(toSave);
  }

  async readRoom(tx: Reader, account: string): Promise<number> {
    const { clock, limits } = this.#context;
    const stored = await readTotal(tx, account, firstCountedDay(limits, clock.now()));
    return limits.accountStoredBytes - stored;
  }

  #requireTotal({ account }: StoredBytes): void {
    const count = this.#known(`account ${account}`);
    if (count === undefined) return;
    const { accountStoredBytes } = this.#context.limits;
    if (count.before + count.saved + count.unsaved < accountStoredBytes) return;
    this.#refuse('the account has stored too many bytes: some are given back each day');
  }

  #requireOfRelay({ account, relay, isLimited }: StoredBytes): void {
    if (relay === undefined) return;
    const key = `relay ${relay}`;
    const limit = this.#context.limits.foreignRelayDailyBytes;
    const mostOfRemovals = limit + reserveOfSenders(limit) + removalBytes(limit);
    const hasRoom = isLimited
      ? this.#hasRoom({ key, limit, account })
      : this.#today(key) < mostOfRemovals;
    if (hasRoom) return;
    this.#refuse('the home relay and its accounts stored too many bytes today');
  }

  /**
   * Above the bytes of a recipient, a relay that delivered little to it today goes on; in its part, too,
   * senders of little have a reserve.
   */
  #requireOfRecipient({ account, relay, recipient }: StoredBytes): void {
    if (relay === undefined || recipient === undefined) return;
    const limit = this.#context.limits.accountReceivedDailyBytes;
    const quiet = limit / senderShare;
    if (this.#hasRoom({ key: inboxOf(recipient), limit, account, quiet })) return;
    const ofRelay = { key: inboxOf(recipient, relay), limit: limit / relayShare };
    if (this.#hasRoom({ ...ofRelay, account, quiet })) return;
    this.#refuse('the account received too many bytes today');
  }

  /** Above a limit, accounts that sent little today have a reserve: others of their relay used it up. */
  #hasRoom({ key, limit, account, quiet = limit / senderShare }: Shared): boolean {
    const bytes = this.#today(key);
    if (bytes < limit) return true;
    if (bytes >= limit + reserveOfSenders(limit)) return false;
    return this.#today(`account ${account}`) < quiet;
  }

  /** Above the bytes of all other relays, a relay that stored little today goes on. */
  #requireShare({ relay }: StoredBytes): void {
    if (relay === undefined) return;
    const { foreignDailyBytes } = this.#context.limits;
    if (this.#today(foreign.key) < foreignDailyBytes) return;
    if (this.#today(`relay ${relay}`) < foreignDailyBytes / relayShare) return;
    this.#refuse('other relays and their accounts stored too many bytes today');
  }

  #today(key: string): number {
    const count = this.#known(key);
    return count === undefined ? 0 : count.saved + count.unsaved;
  }

  #refuse(text: string): never {
    const wait = (this.#day + 1) * secondsOfDay - this.#context.clock.now();
    throw new ProtocolError('rate_limited', `${text}: try again tomorrow`, {
      data: { retry_after: wait },
    });
  }

  #known(key: string): Count | undefined {
    return this.#large.get(key) ?? this.#small.get(key);
  }

  /** Counts bytes of an owner; returns the counts that have to be saved, also that of a forgotten owner. */
  #count(owner: Owner, bytes: number): readonly Count[] {
    const { key } = owner;
    const count = this.#known(key) ?? { owner, saved: 0, unsaved: 0, before: 0 };
    const forgotten = this.#large.peek(key) === undefined ? this.#remember(count) : undefined;
    count.unsaved += bytes;
    const due = count.unsaved >= unsavedBytes ? [count] : [];
    return forgotten !== undefined && forgotten.unsaved >= keptBytes ? [...due, forgotten] : due;
  }

  /** Returns the owner that is forgotten instead, if any. */
  #remember(count: Count): Count | undefined {
    this.#forgotten = undefined;
    this.#small.set(count.owner.key, count);
    return this.#forgotten;
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
      const { unsaved: bytes } = count;
      count.unsaved = 0;
      count.saved += bytes;
      // Until the day ends it is known what a large owner stored, also if it cannot be saved.
      if (count.saved >= unsavedBytes) this.#keep(count, day);
      try {
        const { today, total } = await this.#saveOne(count.owner, { day, bytes });
        // Another call may have added to it meanwhile.
        count.saved = Math.max(count.saved, today);
        count.before = Math.max(0, total - today);
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

  /** Returns what the owner stored on the day, and an account also in all. */
  async #saveOne(
    { key, account }: Owner,
    { day, bytes }: { readonly day: number; readonly bytes: number },
  ): Promise<{ readonly today: number; readonly total: number }> {
    const { clock, limits, storage } = this.#context;
    const since = firstCountedDay(limits, clock.now());
    return await storage.write(`daily ${key}`, async (tx) => {
      const today = await addBytes(tx, { owner: key, day, bytes });
      return { today, total: account === undefined ? today : await readTotal(tx, account, since) };
    });
  }

  #keep(count: Count, day: number): void {
    const { key } = count.owner;
    // The day may have ended while the count was saved, and the owner may be counted anew.
    if (day !== this.#day || this.#large.peek(key) !== undefined) return;
    const anew = this.#small.peek(key);
    if (anew !== undefined && anew !== count) count.unsaved += anew.unsaved;
    this.#small.delete(key);
    this.#large.set(key, count);
  }
}
