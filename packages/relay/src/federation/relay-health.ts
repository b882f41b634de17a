import { BoundedMap } from '../bounded-map.ts';
import type { RelayContext } from '../context.ts';
import { limitedText } from '../dispatch/refusal.ts';
import {
  relayBack,
  relayFailing,
  relayForgotten,
  relayHealthNotStored,
} from '../observability/peer-events.ts';
import { type Failing, readFailing, type StoredHealth, storeHealth } from './health-store.ts';
import { knownRelays } from './store.ts';

type Parts = Pick<RelayContext, 'clock' | 'limits' | 'log' | 'metrics' | 'random' | 'storage'>;

/** Relays of one transaction. */
const batchSize = 100;

/** Seconds between two stored times at which a healthy relay answered. */
const okInterval = 300;

/**
 * Which relays fail, since when, and when each is tried again: one backoff for deliveries, routes
 * and questions. Held in memory and stored, so that a restart, the other processes and the
 * operator's commands know it too.
 */
export class RelayHealth implements AsyncDisposable {
  readonly #parts: Parts;
  readonly #onBack: (relayId: string) => Promise<void>;
  readonly #failing: BoundedMap<string, Failing>;
  /** Unix seconds of the last success that was stored. */
  readonly #okStored: BoundedMap<string, number>;
  /** To be stored, or being stored; one entry for each relay, the newest. */
  readonly #waiting = new Map<string, StoredHealth>();
  #storing: Promise<void> | undefined;
  readonly #waking = new Set<Promise<void>>();
  /** Unix seconds at which what waits for a relay was last made due. */
  readonly #wokenAt: BoundedMap<string, number>;
  /** Relays that were back once more before the next time at which that may happen. */
  readonly #wakingLater = new Map<string, Disposable>();

  /** @param onBack called when a relay that failed can be reached again */
  constructor(parts: Parts, onBack: (relayId: string) => Promise<void>) {
    this.#parts = parts;
    this.#onBack = onBack;
    this.#failing = new BoundedMap(parts.limits.federationRegistryRelays);
    this.#okStored = new BoundedMap(parts.limits.federationRegistryRelays);
    this.#wokenAt = new BoundedMap(parts.limits.federationRegistryRelays);
  }

  /** Reads what was stored, before a start. */
  async restore(): Promise<void> {
    for (const [relayId, failing] of await this.#parts.storage.read(readFailing)) {
      this.#failing.set(relayId, failing);
    }
  }

  /**
   * Adopts earlier retries that an operator's command or another process stored, and relays that
   * another process reached.
   */
  async adopt(): Promise<void> {
    const known = [...this.#failing.entries()].filter(([relayId]) => !this.#waiting.has(relayId));
    const stored = await this.#parts.storage.read(readFailing);
    for (const [relayId, failing] of known) {
      // Newer than what was read.
      if (this.#failing.get(relayId) !== failing) continue;
      const { retryAt } = stored.get(relayId) ?? { retryAt: 0 };
      if (retryAt < failing.retryAt) this.#failing.set(relayId, { ...failing, retryAt });
    }
  }

  /** Returns until when a failing relay is not asked, Unix seconds. */
  pausedUntil(relayId: string): number | undefined {
    const retryAt = this.#failing.get(relayId)?.retryAt;
    return retryAt !== undefined && this.#parts.clock.now() < retryAt ? retryAt : undefined;
  }

  /** Returns for how many seconds a relay has been failing; 0 if it is not. */
  failingFor(relayId: string): number {
    const since = this.#failing.get(relayId)?.since;
    return since === undefined ? 0 : Math.max(0, this.#parts.clock.now() - since);
  }

  isFailing(relayId: string): boolean {
    return this.#failing.get(relayId) !== undefined;
  }

  /** Number of failing relays. */
  get failing(): number {
    return this.#failing.size;
  }

  /**
   * Forgets failing relays that are not in the registry and are not asked any more. While mail waits
   * for one, its pauses go on, and its failure is logged once.
   */
  forgetUnlisted(listed: ReadonlySet<string>): void {
    const { clock, limits } = this.#parts;
    for (const [relayId, { retryAt }] of [...this.#failing.entries()]) {
      if (listed.has(relayId) || clock.now() < retryAt + 2 * limits.peerRetryMost) continue;
      this.#failing.delete(relayId);
      relayForgotten(this.#parts);
    }
  }

  /** Returns the earliest retry of a failing relay, Unix seconds. */
  nextRetry(): number | undefined {
    let next: number | undefined;
    for (const [, { retryAt }] of this.#failing.entries()) {
      next = Math.min(next ?? retryAt, retryAt);
    }
    return next;
  }

  /**
   * Records that a relay was not reached or did not answer. Failures during the pause that an
   * earlier failure began belong to it: many calls fail at once.
   *
   * @param error in words, for the operator
   */
  failed(relayId: string, error: string): void {
    if (this.pausedUntil(relayId) !== undefined) return;
    const { clock, limits } = this.#parts;
    const now = clock.now();
    const before = this.#failing.get(relayId);
    const failures = (before?.failures ?? 0) + 1;
    const failing = {
      since: before?.since ?? now,
      failures,
      retryAt: now + this.#pauseAfter(failures),
      error: limitedText(error, limits.relayErrorText),
    };
    this.#failing.set(relayId, failing);
    if (before === undefined) relayFailing(this.#parts, { relay: relayId, error });
    this.#store({ relayId, failing, lastOk: undefined });
  }

  /** Records that a relay was reached. */
  succeeded(relayId: string): void {
    const now = this.#parts.clock.now();
    const failing = this.#failing.get(relayId);
    const stored = this.#okStored.get(relayId);
    if (failing === undefined && stored !== undefined && now < stored + okInterval) return;
    this.#okStored.set(relayId, now);
    this.#failing.delete(relayId);
    this.#store({ relayId, failing: undefined, lastOk: now });
    if (failing === undefined) return;
    relayBack(this.#parts, { relay: relayId, seconds: now - failing.since });
    this.#wakeOnceInAWhile(relayId);
  }

  /**
   * Makes due what waits for a relay: not more often than its first pause lasts, because a relay that
   * connects and resets would have all its mail made due and postponed each time.
   */
  #wakeOnceInAWhile(relayId: string): void {
    if (this.#wakingLater.has(relayId)) return;
    const { clock, limits } = this.#parts;
    const before = this.#wokenAt.get(relayId);
    const wait = before === undefined ? 0 : before + limits.peerRetryFirst - clock.now();
    if (wait <= 0) {
      this.#wokenAt.set(relayId, clock.now());
      const waking = this.#wake(relayId).finally(() => this.#waking.delete(waking));
      this.#waking.add(waking);
      return;
    }
    const timer = clock.after(wait * 1_000, () => {
      this.#wakingLater.delete(relayId);
      if (!this.isFailing(relayId)) this.#wakeOnceInAWhile(relayId);
    });
    this.#wakingLater.set(relayId, timer);
  }

  /** Waits until everything is stored. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const timer of this.#wakingLater.values()) timer[Symbol.dispose]();
    await Promise.all([this.#storing, ...this.#waking]);
  }

  async #wake(relayId: string): Promise<void> {
    try {
      await this.#onBack(relayId);
    } catch (error) {
      // What waits for the relay is due by its own deadlines.
      relayHealthNotStored(this.#parts, error);
    }
  }

  #pauseAfter(failures: number): number {
    const { limits, random } = this.#parts;
    const pause = Math.min(limits.peerRetryFirst * 2 ** (failures - 1), limits.peerRetryMost);
    const chance = (random(1)[0] as number) / 256;
    return Math.max(1, Math.round(pause * (1 - chance / 2)));
  }

  #store(health: StoredHealth): void {
    this.#waiting.set(health.relayId, health);
    this.#storing ??= this.#storeAll().finally(() => {
      this.#storing = undefined;
    });
  }

  async #storeAll(): Promise<void> {
    while (this.#waiting.size > 0) {
      const batch = [...this.#waiting.values()].slice(0, batchSize);
      try {
        await this.#parts.storage.write(knownRelays, (tx) => storeHealth(tx, batch));
      } catch (error) {
        // Memory has it; the relay's next failure or success stores it.
        relayHealthNotStored(this.#parts, error);
      }
      for (const health of batch) {
        const { relayId } = health;
        if (this.#waiting.get(relayId) === health) this.#waiting.delete(relayId);
      }
    }
  }
}
