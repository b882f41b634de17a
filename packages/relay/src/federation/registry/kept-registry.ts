/** The registry as this relay knows it: cached, refreshed, and limited in how often it is read. */
import { rejectOnAbort } from '@posthouse/peer';
import {
  checkRelayEntry,
  isRegistryError,
  type Registry,
  type RelayEntry,
} from '@posthouse/protocol';
import { BoundedMap } from '../../bounded-map.ts';
import type { RegistryStatus, RelayContext } from '../../context.ts';
import { RateLimiter } from '../../dispatch/rate-limiter.ts';
import { TurnTime } from '../../event-loop.ts';
import { registryLost, registryRead, registryRestored } from '../../observability/events.ts';
import { PeerRefusal } from '../peer-refusal.ts';
import { timeLimit } from '../time-limit.ts';

type Parts = Pick<RelayContext, 'clock' | 'limits' | 'log' | 'metrics'>;

/** A record as it was read; without `entry`, the registry did not list the relay. */
interface KnownRecord {
  readonly entry: RelayEntry | undefined;
  /** Unix seconds. */
  readonly readAt: number;
}

/** The last complete reading of the registry. */
interface Listing {
  readonly entries: ReadonlyMap<string, RelayEntry>;
  /** Relays that the reading had more than once. */
  readonly repeated: ReadonlySet<string>;
  /** False if the registry has more relays than the limit. */
  readonly isComplete: boolean;
  /** Unix seconds. */
  readonly readAt: number;
}

/** A record from before a start, with the Unix second at which it was read. */
export interface StoredRecord {
  readonly entry: RelayEntry;
  readonly seenAt: number;
}

/** What a registry is, if it differs from one that is read over the network. */
export interface RegistryKind {
  /** For a registry that costs little to read: returns another text after each change. */
  readonly version?: () => Promise<string>;
  /**
   * Whether a relay is admitted only by a record that was read by itself: two nodes agree on single
   * records, a list is of one node.
   */
  readonly isConfirming?: boolean;
}

/**
 * Keeps the registry's records (07 §B4, §B5). A record that admits a relay is at most
 * `federationRegistryCheck` seconds old, or `federationRegistryRefresh` if the registry cannot be
 * read. Reads that a stranger causes are limited, for its address and in all.
 */
export class KeptRegistry implements Disposable {
  readonly #registry: Registry;
  readonly #parts: Parts;
  readonly #reads = new Map<string, Promise<RelayEntry | undefined>>();
  readonly #strangers: { readonly all: RateLimiter; readonly byAddress: RateLimiter };
  /** Records read one by one, newer than the listing or not in it. */
  readonly #single: BoundedMap<string, KnownRecord>;
  #listing: Listing | undefined;
  /** What {@link activeRelays} returns, until a record changes: callers ask for it again and again. */
  #active: readonly string[] | undefined;
  /** Readings of the whole registry that began, and the one of them that the listing is of. */
  #begun = 0;
  #listed = 0;
  #isLost = false;
  /** Unix seconds of the last single read, if it failed. */
  #failedAt = Number.NEGATIVE_INFINITY;
  readonly #version: (() => Promise<string>) | undefined;
  readonly #isConfirming: boolean;
  readonly #stopping = new AbortController();
  /** Active records that a single read has confirmed, if that is needed. */
  readonly #confirmed: BoundedMap<string, RelayEntry>;
  /** The version before the last {@link refresh}. */
  #refreshed: string | undefined;

  constructor(registry: Registry, parts: Parts, kind: RegistryKind = {}) {
    this.#registry = registry;
    this.#version = kind.version;
    this.#isConfirming = kind.isConfirming === true;
    this.#parts = parts;
    const { limits, clock } = parts;
    this.#single = new BoundedMap(limits.federationUnknownRelays);
    this.#confirmed = new BoundedMap(limits.federationRegistryRelays);
    this.#strangers = {
      all: new RateLimiter({
        rate: limits.federationLookupRate,
        burst: limits.federationLookupRate,
        clock,
        keys: 1,
      }),
      byAddress: new RateLimiter({
        rate: limits.federationAddressLookupRate,
        burst: Math.max(limits.federationAddressLookupBurst, limits.federationAddressLookupRate),
        clock,
        keys: limits.rememberedCallers,
      }),
    };
  }

  /** Ends the reads under way: jobs that stop do not wait for a node. */
  [Symbol.dispose](): void {
    this.#stopping.abort(new Error('the relay is stopping'));
  }

  /** Whether the registry is a file, which costs little to read. */
  get isFile(): boolean {
    return this.#version !== undefined;
  }

  /** Tells whether the registry is a file that changed since the last {@link refresh}. */
  async isChanged(): Promise<boolean> {
    return this.#version !== undefined && (await this.#version()) !== this.#refreshed;
  }

  /** Takes over records of an earlier run; older ones than a refresh interval have no effect. */
  restore(records: readonly StoredRecord[]): void {
    for (const { entry, seenAt } of records) {
      this.#single.set(entry.relay_id, { entry, readAt: seenAt });
    }
    this.#active = undefined;
  }

  /**
   * Reads the whole registry. A relay that one reading lists twice is not listed (07 §B5), a
   * malformed record is skipped.
   *
   * @returns whether it could be read; otherwise what was known stays
   */
  async refresh(): Promise<boolean> {
    const { clock, limits } = this.#parts;
    const readAt = clock.now();
    this.#begun += 1;
    const reading = this.#begun;
    if (this.#version !== undefined) this.#refreshed = await this.#version();
    const entries = new Map<string, RelayEntry>();
    const repeated = new Set<string>();
    let isComplete = true;
    const list = async (signal: AbortSignal) => {
      const turn = new TurnTime();
      for await (const entry of this.#registry.listRelays(signal)) {
        if (turn.isOver) await turn.next();
        if (!isValid(entry)) continue;
        const { relay_id: relayId } = entry;
        if (entries.has(relayId)) repeated.add(relayId);
        if (!entries.has(relayId) && entries.size >= limits.federationRegistryRelays) {
          isComplete = false;
          break;
        }
        entries.set(relayId, entry);
      }
    };
    try {
      await this.#inTime(limits.federationRegistryListTimeout, list);
    } catch (error) {
      if (!this.#stopping.signal.aborted) this.#lost(error);
      return false;
    }
    // A later one ended meanwhile: what it read is newer.
    if (reading < this.#listed) return true;
    this.#listed = reading;
    for (const relayId of repeated) entries.delete(relayId);
    this.#listing = { entries, repeated, isComplete, readAt };
    for (const [relayId, { readAt: at }] of [...this.#single.entries()]) {
      if (at <= readAt) this.#single.delete(relayId);
    }
    this.#active = undefined;
    this.#restored();
    return true;
  }

  /** Returns the records of the last reading, of every status. */
  entries(): RelayEntry[] {
    return [...(this.#listing?.entries.values() ?? [])];
  }

  /** Whether the whole registry was read since the start. */
  get isRead(): boolean {
    return this.#listing !== undefined;
  }

  /** Whether {@link entries} has every relay of the registry. */
  get isComplete(): boolean {
    return this.#listing?.isComplete ?? false;
  }

  /**
   * Returns the relays that the registry lists as active, of the last reading and of records read
   * since.
   */
  activeRelays(): readonly string[] {
    this.#active ??= this.#findActive();
    return this.#active;
  }

  #findActive(): string[] {
    const ids = new Set(this.#listing?.entries.keys());
    for (const [relayId] of this.#single.entries()) ids.add(relayId);
    return [...ids].filter((relayId) => this.peek(relayId)?.status === 'active');
  }

  /** Returns what is known of a relay, however old, without reading. */
  peek(relayId: string): RelayEntry | undefined {
    return this.#known(relayId)?.entry;
  }

  /** Seconds since the record of a relay was read; infinite if it never was. */
  ageOf(relayId: string): number {
    return this.#ageOf(this.#known(relayId));
  }

  /**
   * Returns the current record of a relay, to admit it or to trust its signature; `undefined` if
   * the registry does not list it.
   *
   * @param cause the address or relay that caused the question, charged for the read; absent for a
   *   need of this relay's own
   * @throws PeerRefusal `registry_busy` if strangers caused too many reads, `registry_unavailable`
   */
  async current(relayId: string, cause?: string): Promise<RelayEntry | undefined> {
    if (this.#listing?.repeated.has(relayId) === true) return undefined;
    const known = this.#known(relayId);
    const age = this.#ageOf(known);
    if (known !== undefined && this.#serves(relayId, age, cause)) return known.entry;
    // A handshake has no time to wait for nodes that do not answer.
    if (this.#isPaused() && this.#servesUnread(known)) return known?.entry;
    try {
      if (cause !== undefined) this.#charge(cause);
      return await this.#read(relayId);
    } catch (error) {
      // Nodes that differ can be read.
      if (!isRegistryError(error, 'nodes_differ') && this.#servesUnread(known)) return known?.entry;
      if (error instanceof PeerRefusal) throw error;
      throw new PeerRefusal('registry_unavailable', 'the registry cannot be read', {
        cause: error,
      });
    }
  }

  /** Makes the next {@link current} read the record again; called after a failed check. */
  expire(relayId: string): void {
    const known = this.#known(relayId);
    if (known?.entry === undefined) return;
    const { clock, limits } = this.#parts;
    const readAt = Math.min(known.readAt, clock.now() - limits.federationRegistryCheck);
    this.#single.set(relayId, { entry: known.entry, readAt });
    this.#active = undefined;
  }

  #serves(relayId: string, age: number, cause: string | undefined): boolean {
    const entry = this.#known(relayId)?.entry;
    const { limits } = this.#parts;
    if (entry !== undefined) {
      return age < limits.federationRegistryCheck && this.#isConfirmed(entry);
    }
    // A relay may have been entered since the listing, so its own record is read once. This relay's
    // own questions are few.
    const wasAskedFor = this.#single.get(relayId) !== undefined;
    return wasAskedFor && cause !== undefined && age < limits.federationUnknownRelay;
  }

  /** Whether a record within the refresh interval serves when the registry cannot be read now. */
  #servesUnread(known: KnownRecord | undefined): boolean {
    const isRecent = this.#ageOf(known) < this.#parts.limits.federationRegistryRefresh;
    return known?.entry !== undefined && isRecent && this.#isConfirmed(known.entry);
  }

  /** Whether a single read failed a short time ago. */
  #isPaused(): boolean {
    const { clock, limits } = this.#parts;
    const since = clock.now() - this.#failedAt;
    return since >= 0 && since < limits.federationRegistryRetry;
  }

  /** Whether a record may admit a relay; one that is not active admits none anyway. */
  #isConfirmed(entry: RelayEntry | undefined): boolean {
    if (!this.#isConfirming || entry?.status !== 'active') return true;
    const { endpoint, updated_at } = this.#confirmed.get(entry.relay_id) ?? {};
    return endpoint === entry.endpoint && updated_at === entry.updated_at;
  }

  /** The newer of a single record and the listing. */
  #known(relayId: string): KnownRecord | undefined {
    const single = this.#single.get(relayId);
    const listing = this.#listing;
    if (listing?.repeated.has(relayId) === true) {
      return { entry: undefined, readAt: listing.readAt };
    }
    const isListed = listing?.entries.has(relayId) ?? false;
    // `expire` makes a listed record older on purpose.
    if (single !== undefined) return single;
    if (listing === undefined || !(isListed || listing.isComplete)) return undefined;
    return { entry: listing.entries.get(relayId), readAt: listing.readAt };
  }

  #ageOf(known: KnownRecord | undefined): number {
    const age = this.#parts.clock.now() - (known?.readAt ?? Number.NEGATIVE_INFINITY);
    // A clock that was set back tells nothing of the age.
    return age < 0 ? Number.POSITIVE_INFINITY : age;
  }

  #charge(cause: string): void {
    const { all, byAddress } = this.#strangers;
    if (byAddress.take(cause) === 0 && all.take('') === 0) return;
    throw new PeerRefusal('registry_busy', 'too many unknown relays caused registry reads');
  }

  /** Reads one record; at most one read of a relay is under way. */
  async #read(relayId: string): Promise<RelayEntry | undefined> {
    const running = this.#reads.get(relayId);
    if (running !== undefined) return await running;
    const reading = this.#readOnce(relayId).finally(() => this.#reads.delete(relayId));
    this.#reads.set(relayId, reading);
    return await reading;
  }

  async #readOnce(relayId: string): Promise<RelayEntry | undefined> {
    const readAt = this.#parts.clock.now();
    try {
      const read = await this.#inTime(
        this.#parts.limits.federationRegistryTimeout,
        async (signal) => await wellFormed(this.#registry.getRelay(relayId, signal)),
      );
      // As in a list, a malformed record is none, and an earlier one does not serve in its place.
      const entry = isValid(read) ? read : undefined;
      if (entry !== undefined && entry.relay_id !== relayId) {
        throw new Error('the registry returned another relay');
      }
      this.#failedAt = Number.NEGATIVE_INFINITY;
      this.#single.set(relayId, { entry, readAt });
      this.#active = undefined;
      if (this.#isConfirming && entry?.status === 'active') this.#confirmed.set(relayId, entry);
      registryRead(this.#parts, { kind: 'one', outcome: 'ok' });
      return entry;
    } catch (error) {
      registryRead(this.#parts, { kind: 'one', outcome: 'error' });
      // Nodes that differ can be read; what they agreed on earlier counts no more.
      if (isRegistryError(error, 'nodes_differ')) this.#confirmed.delete(relayId);
      else this.#failedAt = this.#parts.clock.now();
      throw error;
    }
  }

  /** @throws Error if the registry takes too long: what it answers later has no effect */
  async #inTime<T>(milliseconds: number, reading: (signal: AbortSignal) => Promise<T>): Promise<T> {
    using limit = timeLimit(this.#parts.clock, milliseconds, this.#stopping.signal);
    return await rejectOnAbort(limit.signal, reading(limit.signal));
  }

  #lost(error: unknown): void {
    registryRead(this.#parts, { kind: 'all', outcome: 'error' });
    if (this.#isLost) return;
    this.#isLost = true;
    registryLost(this.#parts, error);
  }

  #restored(): void {
    registryRead(this.#parts, { kind: 'all', outcome: 'ok' });
    if (!this.#isLost) return;
    this.#isLost = false;
    registryRestored(this.#parts);
  }
}

/** A record that breaks 07 §A3 is none: any operator can store one. */
async function wellFormed(
  reading: Promise<RelayEntry | undefined>,
): Promise<RelayEntry | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isRegistryError(error, 'invalid_record')) return undefined;
    throw error;
  }
}

function isValid(entry: unknown): entry is RelayEntry {
  try {
    checkRelayEntry(entry);
    return true;
  } catch {
    // An operator's malformed record must not hide the records of others (07 §A3).
    return false;
  }
}

/** Tells this relay's status by the kept registry; not active if the registry cannot be read. */
export function registryStatusOf(registry: KeptRegistry, relayId: string): RegistryStatus {
  return {
    async isActive() {
      try {
        return (await registry.current(relayId))?.status === 'active';
      } catch {
        // A caller is refused for now; the job that refreshes the registry reports the error.
        return false;
      }
    },
  };
}
