import { BoundedMap } from '../bounded-map.ts';
import type { Session } from '../call.ts';
import type { Clock } from '../context.ts';
import { groupKeys, type Hint } from '../notifications/hint.ts';
import type { Hub, Listener } from '../notifications/hub.ts';

/**
 * Keys whose rank is remembered, more than a connection can subscribe to. A forgotten one may be
 * told the same again, which hints are free to do.
 */
const rememberedKeys = 4_096;

export interface BoundSessionParts {
  readonly hub: Hub;
  readonly clock: Pick<Clock, 'now'>;
  /** Sends a text; `sent` is called once the peer's network has taken it. */
  readonly send: (text: string, sent: () => void) => void;
}

/**
 * The session a connection is bound to, renewed in place, and the hints on their way to it. A peer
 * that reads slowly finds the newest hint of each kind, never a queue (02 §10.5, §12.3).
 */
export class BoundSession implements Listener {
  readonly #parts: BoundSessionParts;
  readonly #waiting = new Map<string, Hint>();
  /** The highest rank that went out, by key: catching up must not repeat it. */
  readonly #told = new BoundedMap<string, number>(rememberedKeys);
  #session: Session;
  #isRevoked = false;
  #isEnabled = false;
  #isSending = false;
  /** Groups it hears of (02 §13). */
  readonly #groups = new Set<string>();
  /** The last replacement of them that was asked for. */
  #subscribing: Promise<unknown> = Promise.resolve();
  #isReleased = false;

  constructor(session: Session, parts: BoundSessionParts) {
    this.#session = session;
    this.#parts = parts;
    // Revocation must reach it from now on; hints only once they are enabled.
    if (session.mode === 'device') parts.hub.add(this);
  }

  get session(): Session {
    return this.#session;
  }

  /** Expired or revoked: this connection will not be of use for its account again. */
  get dead(): boolean {
    return this.#isRevoked || this.#parts.clock.now() >= this.#session.expiresAt;
  }

  get account(): string {
    return this.#session.account;
  }

  get deviceId(): string {
    return this.#session.mode === 'device' ? this.#session.deviceId : '';
  }

  /** The same identity with a later expiry; what is enabled stays so (02 §10.6). */
  renew(session: Session): void {
    this.#session = session;
  }

  /** Lets hints through; after the response that announced the session (02 §12.5). */
  enable(): void {
    this.#isEnabled = true;
  }

  hint(hint: Hint): void {
    if (!this.#isEnabled || this.dead) return;
    const { key, rank = Number.POSITIVE_INFINITY } = hint;
    const newest = Math.max(this.#waiting.get(key)?.rank ?? -1, this.#told.get(key) ?? -1);
    if (newest >= rank) return;
    this.#waiting.set(key, hint);
    this.#flush();
  }

  /** @see ConnectionBinding */
  async subscribeGroups(
    work: (present: ReadonlySet<string>) => Promise<ReadonlyMap<string, number>>,
  ): Promise<void> {
    const turn = this.#subscribing.then(async () => this.#hearOf(await work(this.#groups)));
    this.#subscribing = turn.catch(() => {});
    await turn;
  }

  leaveGroup(group: string): void {
    this.#groups.delete(group);
    this.#parts.hub.groups.leave(this, group);
    for (const key of Object.values(groupKeys(group))) {
      this.#waiting.delete(key);
      this.#told.delete(key);
    }
  }

  revoke(): void {
    this.#isRevoked = true;
    this.release();
  }

  cap(expiresAt: number): void {
    if (expiresAt < this.#session.expiresAt) this.#session = { ...this.#session, expiresAt };
  }

  /** Takes it out of the hub: the connection is over, or the session is. */
  release(): void {
    this.#isReleased = true;
    for (const group of [...this.#groups]) this.leaveGroup(group);
    this.#waiting.clear();
    this.#parts.hub.remove(this);
  }

  #hearOf(groups: ReadonlyMap<string, number>): void {
    // It ended while the groups were looked up.
    if (this.#isReleased || this.dead) return;
    for (const group of [...this.#groups]) {
      if (!groups.has(group)) this.leaveGroup(group);
    }
    for (const [group, sequence] of groups) {
      // What happened before is the client's to catch up with (02 §13.3).
      if (!this.#groups.has(group)) this.#told.set(groupKeys(group).timeline, sequence);
      this.#groups.add(group);
      this.#parts.hub.groups.join(this, group, sequence);
    }
  }

  #flush(): void {
    if (this.#isSending || this.#waiting.size === 0) return;
    const hints = [...this.#waiting.values()];
    this.#waiting.clear();
    this.#isSending = true;
    let unsent = hints.length;
    for (const { key, text, rank } of hints) {
      if (rank !== undefined) this.#told.set(key, rank);
      this.#parts.send(text, () => {
        unsent -= 1;
        if (unsent > 0) return;
        this.#isSending = false;
        if (!this.dead) this.#flush();
      });
    }
  }
}
