import { BoundedMap } from '../bounded-map.ts';
import type { Blocks, Bus, Clock, Sessions } from '../context.ts';
import type { RelayLimits } from '../limits.ts';
import type { Storage } from '../storage/types.ts';
import { isSecretText, secretHash } from './secrets.ts';
import type { Session } from './session.ts';
import { readSession, type StoredSession } from './session-store.ts';

/** Milliseconds for which a session is kept. */
const cacheMilliseconds = 5_000;

interface Cached extends StoredSession {
  readonly readAt: number;
}

/**
 * Finds the session of a token, from memory for a few seconds after it was read. One of several
 * processes reads storage for every look-up unless it knows which sessions ended ({@link isCurrent}).
 */
export class SessionCache implements Sessions, Disposable {
  readonly #storage: Storage;
  readonly #clock: Clock;
  readonly #bus: Bus;
  readonly #blocks: Pick<Blocks, 'hasAccount'>;
  readonly #trust: number;
  readonly #cache: BoundedMap<string, Cached>;
  /** Hashes of the tokens in the cache, by account: what ended of one is forgotten without a search. */
  readonly #ofAccount = new Map<string, Set<string>>();
  readonly #subscription: Disposable;
  #changes = 0;
  #asOf = Number.NEGATIVE_INFINITY;

  constructor(parts: {
    readonly storage: Storage;
    readonly clock: Clock;
    readonly bus: Bus;
    readonly limits: Pick<RelayLimits, 'sessionTrust' | 'cachedSessions'>;
    readonly blocks: Pick<Blocks, 'hasAccount'>;
  }) {
    this.#storage = parts.storage;
    this.#cache = new BoundedMap(parts.limits.cachedSessions, {
      evicted: ({ session }) => this.#unlist(session),
    });
    this.#blocks = parts.blocks;
    this.#trust = parts.limits.sessionTrust;
    this.#clock = parts.clock;
    this.#bus = parts.bus;
    this.#subscription = parts.bus.subscribe((notice) => {
      if (notice.kind === 'revoked') this.#forget(notice.account, new Set(notice.deviceIds));
      if (notice.kind === 'capped') this.#forget(notice.account, new Set([notice.deviceId]));
      if (notice.kind === 'ended') this.#forgetSessions(notice.sessionIds);
      if (notice.kind === 'gap' && notice.aggregates === undefined) this.#forgetAll();
    });
  }

  get changes(): number {
    return this.#changes;
  }

  get isCurrent(): boolean {
    if (!this.#bus.isShared) return true;
    return this.#bus.isConnected && this.#clock.monotonic() - this.#asOf < this.#trust;
  }

  get asOf(): number {
    return this.#bus.isShared ? this.#asOf : this.#clock.monotonic();
  }

  /**
   * Forgets the sessions of accounts in whose sessions some ended.
   *
   * @param read.asOf since when more may have ended, in milliseconds of the clock's `monotonic`;
   *   absent if more had ended already
   */
  sessionsEnded(read: {
    readonly accounts: readonly string[] | 'any';
    readonly asOf?: number;
  }): void {
    if (read.accounts === 'any') this.#forgetAll();
    else if (read.accounts.length > 0) this.#forgetAccounts(new Set(read.accounts));
    this.#asOf = read.asOf ?? this.#asOf;
  }

  isKnown(token: string): boolean {
    return isSecretText(token) && this.#cache.get(secretHash(token)) !== undefined;
  }

  async find(token: string, origin: string): Promise<Session | undefined> {
    if (!isSecretText(token)) return undefined;
    const hash = secretHash(token);
    const found = this.#fresh(hash) ?? (await this.#read(hash));
    if (found === undefined || found.origin !== origin) return undefined;
    return this.#isValid(found.session) ? found.session : undefined;
  }

  async confirm({ id }: Session): Promise<Session | undefined> {
    const session = (await this.#read(id))?.session;
    return session !== undefined && this.#isValid(session) ? session : undefined;
  }

  [Symbol.dispose](): void {
    this.#subscription[Symbol.dispose]();
  }

  /** The sessions of an account end when it is blocked; one may have been opened at that moment. */
  #isValid({ account, expiresAt }: Session): boolean {
    return this.#clock.now() < expiresAt && !this.#blocks.hasAccount(account);
  }

  #fresh(hash: string): Cached | undefined {
    const cached = this.isCurrent ? this.#cache.get(hash) : undefined;
    if (cached === undefined) return undefined;
    return this.#clock.monotonic() - cached.readAt < cacheMilliseconds ? cached : undefined;
  }

  async #read(hash: string): Promise<StoredSession | undefined> {
    const changes = this.#changes;
    const readAt = this.#clock.monotonic();
    const stored = await this.#storage.read((tx) => readSession(tx, hash));
    if (stored === undefined) this.#delete(hash);
    // A change announced meanwhile may be newer than the snapshot that was read.
    if (stored !== undefined && changes === this.#changes) {
      this.#set(hash, { ...stored, readAt });
    }
    return stored;
  }

  #set(hash: string, cached: Cached): void {
    const { account } = cached.session;
    const hashes = this.#ofAccount.get(account) ?? new Set();
    hashes.add(hash);
    this.#ofAccount.set(account, hashes);
    this.#cache.set(hash, cached);
  }

  #delete(hash: string): void {
    const cached = this.#cache.peek(hash);
    if (cached === undefined) return;
    this.#cache.delete(hash);
    this.#unlist(cached.session);
  }

  #unlist({ id, account }: Session): void {
    const hashes = this.#ofAccount.get(account);
    hashes?.delete(id);
    if (hashes?.size === 0) this.#ofAccount.delete(account);
  }

  #forget(account: string, deviceIds: ReadonlySet<string>): void {
    this.#changes += 1;
    for (const hash of [...(this.#ofAccount.get(account) ?? [])]) {
      const session = this.#cache.peek(hash)?.session;
      if (session?.mode === 'device' && deviceIds.has(session.deviceId)) this.#delete(hash);
    }
  }

  #forgetSessions(ids: readonly string[]): void {
    this.#changes += 1;
    for (const id of ids) this.#delete(id);
  }

  #forgetAccounts(accounts: ReadonlySet<string>): void {
    this.#changes += 1;
    for (const account of accounts) {
      for (const hash of [...(this.#ofAccount.get(account) ?? [])]) this.#delete(hash);
    }
  }

  #forgetAll(): void {
    this.#changes += 1;
    this.#cache.clear();
    this.#ofAccount.clear();
  }
}
