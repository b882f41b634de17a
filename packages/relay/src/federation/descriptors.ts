/** Verified descriptors of other relays: kept, fetched again, and limited in how often (07 §B5). */
import { descriptorPeerId, type RelayDescriptor, type RelayEntry } from '@posthouse/protocol';
import { formatPeerId } from '@posthouse/protocol/federation';
import { canonicalJson } from '@posthouse/protocol/json';
import { BoundedMap } from '../bounded-map.ts';
import type { RelayContext } from '../context.ts';
import { descriptorFetched } from '../observability/events.ts';
import type { DescriptorFetcher } from './descriptor-fetch.ts';
import { PeerRefusal } from './peer-refusal.ts';
import { knownRelays, readDescriptor, storeDescriptor } from './store.ts';
import { parseDescriptor, verifyAgainstRecord } from './verify-descriptor.ts';

type Parts = Pick<
  RelayContext,
  'network' | 'clock' | 'limits' | 'random' | 'storage' | 'verifier' | 'metrics'
>;

/** A verified descriptor. */
export interface KnownDescriptor {
  readonly descriptor: RelayDescriptor;
  /** Canonical JSON. */
  readonly text: string;
  /** Unix second at which the registered endpoint gave it; absent if only a handshake did. */
  readonly fetchedAt: number | undefined;
}

/** Attempts to fetch the descriptor of one relay. Times are Unix seconds. */
interface Attempts {
  /** The endpoint of the last attempt; `undefined` before the first. */
  readonly endpoint: string | undefined;
  readonly lastAt: number;
  /** Failures in a row. */
  readonly failures: number;
  /** When the next regular one is due. */
  readonly dueAt: number;
  /** Why the last attempt failed, in words. */
  readonly lastError?: string;
}

/** Why a descriptor is fetched: `forced` after a failed check or call, which may be sooner. */
export type FetchReason = 'regular' | 'forced';

/** Seconds until a failed fetch is repeated, at the most. */
const longestRetry = 600;

export class Descriptors {
  readonly #parts: Parts;
  readonly #fetcher: DescriptorFetcher;
  readonly #known: BoundedMap<string, KnownDescriptor>;
  readonly #attempts: BoundedMap<string, Attempts>;
  readonly #running = new Map<string, Promise<KnownDescriptor>>();
  readonly #stopping = new AbortController();

  constructor(parts: Parts, fetcher: DescriptorFetcher) {
    this.#parts = parts;
    this.#fetcher = fetcher;
    this.#known = new BoundedMap(parts.limits.federationDescriptors);
    this.#attempts = new BoundedMap(parts.limits.federationDescriptors);
  }

  /**
   * Returns the verified, unexpired descriptor that is known of a relay, from memory or storage.
   *
   * @param entry its current record, against which a stored one is verified again
   */
  async find(entry: RelayEntry): Promise<KnownDescriptor | undefined> {
    const relayId = entry.relay_id;
    const known = this.#known.get(relayId) ?? (await this.#load(entry));
    return known !== undefined && this.#isCurrent(known) ? known : undefined;
  }

  /**
   * Keeps a descriptor that a handshake proved. It does not replace one of the registered endpoint
   * that is still valid, but makes a fetch due if it differs (07 §D2).
   *
   * @returns the descriptor that is kept
   */
  async offer(entry: RelayEntry, descriptor: RelayDescriptor): Promise<KnownDescriptor> {
    const text = canonicalJson(descriptor);
    const known = await this.find(entry);
    if (known?.text === text) return known;
    this.#makeDue(entry.relay_id);
    if (known?.fetchedAt !== undefined) return known;
    return await this.#keep(entry, { descriptor, text, fetchedAt: undefined });
  }

  /**
   * Fetches a relay's descriptor from the endpoint of its record and verifies it. One fetch per relay
   * is under way, and two are at least `federationDescriptorPause` apart, `federationDescriptorForced`
   * if forced; sooner, the descriptor of the last fetch is returned.
   *
   * @throws PeerRefusal `descriptor_unavailable` if it cannot be fetched now; as
   *   `verifyAgainstRecord`, if what the endpoint serves is not valid
   */
  async fetch(entry: RelayEntry, reason: FetchReason): Promise<KnownDescriptor> {
    const relayId = entry.relay_id;
    const running = this.#running.get(relayId);
    if (running !== undefined) return await running;
    const { limits } = this.#parts;
    const attempts = this.#attempts.get(relayId);
    if (attempts?.endpoint === entry.endpoint && this.#isTooSoon(attempts, reason)) {
      return this.#lastFetched(relayId, attempts);
    }
    if (this.#running.size >= limits.federationDescriptorFetches) {
      throw unavailable('too many descriptors are being fetched');
    }
    const fetching = this.#fetch(entry).finally(() => this.#running.delete(relayId));
    this.#running.set(relayId, fetching);
    return await fetching;
  }

  /** Returns when a relay's descriptor is to be fetched again, Unix seconds; 0 for at once. */
  dueAt({ relay_id: relayId, endpoint }: RelayEntry): number {
    const attempts = this.#attempts.get(relayId);
    const isOther = attempts?.endpoint !== undefined && attempts.endpoint !== endpoint;
    return isOther ? 0 : (attempts?.dueAt ?? 0);
  }

  /** Ends the fetches under way and starts no others. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort(new Error('the relay is stopping'));
    await Promise.allSettled(this.#running.values());
  }

  async #fetch(entry: RelayEntry): Promise<KnownDescriptor> {
    const { clock, metrics } = this.#parts;
    const { relay_id: relayId, endpoint } = entry;
    const failures = this.#attempts.get(relayId)?.failures ?? 0;
    const lastAt = clock.now();
    try {
      const descriptor = await this.#fetchOnce(entry);
      const fetched = { descriptor, text: canonicalJson(descriptor), fetchedAt: clock.now() };
      const dueAt = clock.now() + this.#jittered(this.#refreshAfter(descriptor));
      this.#attempts.set(relayId, { endpoint, lastAt, failures: 0, dueAt });
      descriptorFetched({ metrics }, 'ok');
      return await this.#keep(entry, fetched);
    } catch (error) {
      const dueAt = clock.now() + this.#jittered(this.#retryAfter(failures + 1));
      const lastError = (error as Error).message;
      this.#attempts.set(relayId, { endpoint, lastAt, failures: failures + 1, dueAt, lastError });
      descriptorFetched({ metrics }, error instanceof PeerRefusal ? error.check : 'error');
      throw error;
    }
  }

  async #fetchOnce(entry: RelayEntry): Promise<RelayDescriptor> {
    let text: string;
    try {
      text = await this.#fetcher.fetch(entry.endpoint, this.#stopping.signal);
    } catch (error) {
      throw unavailable((error as Error).message, error);
    }
    const value = parseDescriptor(this.#parts, text);
    return await verifyAgainstRecord(this.#parts, value, entry);
  }

  #isTooSoon({ failures, lastAt, dueAt }: Attempts, reason: FetchReason): boolean {
    const { clock, limits } = this.#parts;
    const since = clock.now() - lastAt;
    // A last attempt that lies ahead was made before the clock was set back.
    if (since < 0) return false;
    if (reason === 'forced') return since < limits.federationDescriptorForced;
    const pause = failures > 0 ? this.#retryAfter(failures) : limits.federationDescriptorPause;
    return since < Math.min(pause, dueAt - lastAt);
  }

  /** The answer instead of a fetch that would come too soon. */
  #lastFetched(relayId: string, attempts: Attempts): KnownDescriptor {
    const known = this.#known.get(relayId);
    const isOfLastFetch = attempts.failures === 0 && known?.fetchedAt !== undefined;
    if (isOfLastFetch && this.#isCurrent(known)) return known;
    throw unavailable(attempts.lastError ?? 'fetched a moment ago');
  }

  /** Seconds until a valid descriptor is fetched again: sooner than the pause if it expires. */
  #refreshAfter({ expires_at: until }: RelayDescriptor): number {
    const { clock, limits } = this.#parts;
    const half = Math.floor((until - clock.now()) / 2);
    const most = Math.min(half, limits.federationDescriptorRefresh);
    return Math.max(most, limits.federationDescriptorForced);
  }

  #retryAfter(failures: number): number {
    const first = this.#parts.limits.federationRegistryRetry;
    return Math.min(first * 2 ** Math.min(failures - 1, 20), Math.max(first, longestRetry));
  }

  /** Up to a fifth later, so that relays that started together do not fetch together. */
  #jittered(seconds: number): number {
    const [chance = 0] = this.#parts.random(1);
    return Math.round(seconds * (1 + chance / 255 / 5));
  }

  /** Makes a fetch due, as soon as the pauses allow; the first one within half a minute or so. */
  #makeDue(relayId: string): void {
    const { clock, limits, random } = this.#parts;
    const now = clock.now();
    const attempts = this.#attempts.get(relayId);
    if (attempts === undefined) {
      const [chance = 0] = random(1);
      const dueAt = now + Math.round((chance / 255) * limits.federationDescriptorForced);
      this.#attempts.set(relayId, { endpoint: undefined, lastAt: 0, failures: 0, dueAt });
      return;
    }
    const earliest = Math.max(now, attempts.lastAt + limits.federationDescriptorPause);
    this.#attempts.set(relayId, { ...attempts, dueAt: Math.min(attempts.dueAt, earliest) });
  }

  #isCurrent({ descriptor }: KnownDescriptor): boolean {
    return this.#parts.clock.now() < descriptor.expires_at;
  }

  async #keep(entry: RelayEntry, known: KnownDescriptor): Promise<KnownDescriptor> {
    const { descriptor, text, fetchedAt } = known;
    this.#known.set(entry.relay_id, known);
    const peerId = formatPeerId(descriptorPeerId(descriptor));
    const stored = { text, peerId, until: descriptor.expires_at, fetchedAt };
    await this.#parts.storage.write(knownRelays, (tx) => storeDescriptor(tx, entry, stored));
    return known;
  }

  /** Reads the stored descriptor; one that no longer verifies is as if there were none. */
  async #load(entry: RelayEntry): Promise<KnownDescriptor | undefined> {
    const { storage } = this.#parts;
    const stored = await storage.read((tx) => readDescriptor(tx, entry.relay_id));
    if (stored === undefined) return undefined;
    try {
      const value = parseDescriptor(this.#parts, stored.text);
      const descriptor = await verifyAgainstRecord(this.#parts, value, entry);
      const known = { descriptor, text: stored.text, fetchedAt: stored.fetchedAt };
      this.#known.set(entry.relay_id, known);
      return known;
    } catch (error) {
      if (error instanceof PeerRefusal) return undefined;
      throw error;
    }
  }
}

function unavailable(message: string, cause?: unknown): PeerRefusal {
  return new PeerRefusal('descriptor_unavailable', message, { cause });
}
