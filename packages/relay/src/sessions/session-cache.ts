import { BoundedMap } from '../bounded-map.ts';
import type { Bus, Clock, Sessions } from '../context.ts';
import type { Storage } from '../storage/types.ts';
import { isSecretText, secretHash } from './secrets.ts';
import type { Session } from './session.ts';
import { readSession, type StoredSession } from './session-store.ts';

/** Cached sessions, and the longest time for which a change without a notice can go unnoticed. */
const cacheSize = 20_000;
const cacheMilliseconds = 5_000;

interface Cached extends StoredSession {
  readonly readAt: number;
}

/**
 * Finds the session of a token, from memory for a few seconds after it was read. While notices of
 * other processes do not arrive, every look-up reads storage.
 */
export class SessionCache implements Sessions, Disposable {
  readonly #storage: Storage;
  readonly #clock: Clock;
  readonly #bus: Bus;
  readonly #cache = new BoundedMap<string, Cached>(cacheSize);
  readonly #subscription: Disposable;
  #changes = 0;

  constructor(parts: { readonly storage: Storage; readonly clock: Clock; readonly bus: Bus }) {
    this.#storage = parts.storage;
    this.#clock = parts.clock;
    this.#bus = parts.bus;
    this.#subscription = parts.bus.subscribe((notice) => {
      if (notice.kind === 'revoked') this.#forget(notice.account, new Set(notice.deviceIds));
      if (notice.kind === 'capped') this.#forget(notice.account, new Set([notice.deviceId]));
      if (notice.kind === 'ended') this.#forgetSessions(notice.sessionIds);
      if (notice.kind === 'gap') this.#forgetAll();
    });
  }

  get changes(): number {
    return this.#changes;
  }

  isCached(token: string): boolean {
    return this.#fresh(secretHash(token)) !== undefined;
  }

  isKnown(token: string): boolean {
    return isSecretText(token) && this.#cache.get(secretHash(token)) !== undefined;
  }

  async find(token: string, origin: string): Promise<Session | undefined> {
    if (!isSecretText(token)) return undefined;
    const hash = secretHash(token);
    const found = this.#fresh(hash) ?? (await this.#read(hash));
    if (found === undefined || found.origin !== origin) return undefined;
    return this.#clock.now() < found.session.expiresAt ? found.session : undefined;
  }

  async confirm({ id }: Session): Promise<Session | undefined> {
    const session = (await this.#read(id))?.session;
    return session !== undefined && this.#clock.now() < session.expiresAt ? session : undefined;
  }

  [Symbol.dispose](): void {
    this.#subscription[Symbol.dispose]();
  }

  #fresh(hash: string): Cached | undefined {
    const cached = this.#bus.isConnected ? this.#cache.get(hash) : undefined;
    if (cached === undefined) return undefined;
    return this.#clock.monotonic() - cached.readAt < cacheMilliseconds ? cached : undefined;
  }

  async #read(hash: string): Promise<StoredSession | undefined> {
    const changes = this.#changes;
    const readAt = this.#clock.monotonic();
    const stored = await this.#storage.read((tx) => readSession(tx, hash));
    if (stored === undefined) this.#cache.delete(hash);
    // A change announced meanwhile may be newer than the snapshot that was read.
    if (stored !== undefined && changes === this.#changes) {
      this.#cache.set(hash, { ...stored, readAt });
    }
    return stored;
  }

  #forget(account: string, deviceIds: ReadonlySet<string>): void {
    this.#changes += 1;
    for (const [hash, { session }] of this.#cache.entries()) {
      if (session.mode !== 'device' || session.account !== account) continue;
      if (deviceIds.has(session.deviceId)) this.#cache.delete(hash);
    }
  }

  #forgetSessions(ids: readonly string[]): void {
    this.#changes += 1;
    for (const id of ids) this.#cache.delete(id);
  }

  #forgetAll(): void {
    this.#changes += 1;
    this.#cache.clear();
  }
}
