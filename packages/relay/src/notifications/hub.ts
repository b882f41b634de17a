import type { NotificationName } from '@posthouse/protocol';
import type { DeviceSession, Notice } from '../call.ts';
import type { Bus } from '../context.ts';

/** A hint for one connection. Of two under one key, the one of lower rank tells nothing new. */
export interface Hint {
  readonly key: string;
  readonly method: NotificationName;
  readonly params: Readonly<Record<string, string | number>>;
  readonly rank: number;
}

/** A connection that is bound to a device session. */
export interface Listener {
  readonly account: string;
  readonly deviceId: string;
  /** As it is now: a renewal puts another in its place. */
  readonly session: Pick<DeviceSession, 'id' | 'expiresAt'>;
  /** Passes a hint on, or drops it where the session is no longer valid (02 §12.3). */
  hint(hint: Hint): void;
  /** The session ended: no pushes, no subscriptions, a dead binding (02 §10.3, §10.5). */
  revoke(): void;
  /** The session ends at `expiresAt` at the latest. */
  cap(expiresAt: number): void;
}

/** Who is connected here, and who hears what. */
export class Hub implements Disposable {
  readonly #byAccount = new Map<string, Set<Listener>>();
  readonly #subscription: Disposable;

  constructor(bus: Bus) {
    this.#subscription = bus.subscribe((notice) => this.tell(notice));
  }

  add(listener: Listener): void {
    const listeners = this.#byAccount.get(listener.account) ?? new Set();
    listeners.add(listener);
    this.#byAccount.set(listener.account, listeners);
  }

  remove(listener: Listener): void {
    const listeners = this.#byAccount.get(listener.account);
    listeners?.delete(listener);
    if (listeners?.size === 0) this.#byAccount.delete(listener.account);
  }

  /** Accounts that are connected here now. */
  accounts(): string[] {
    return [...this.#byAccount.keys()];
  }

  /** Connections of an account as of now: whoever is revoked leaves them meanwhile. */
  listenersOf(account: string): Listener[] {
    return [...(this.#byAccount.get(account) ?? [])];
  }

  /** Passes a notice to whom it concerns here; the bus does so with each. */
  tell(notice: Notice): void {
    if (!('account' in notice)) return;
    for (const listener of this.listenersOf(notice.account)) tellOne(listener, notice);
  }

  [Symbol.dispose](): void {
    this.#subscription[Symbol.dispose]();
  }
}

function tellOne(listener: Listener, notice: Extract<Notice, { account: string }>): void {
  if (notice.kind === 'capped') {
    if (notice.deviceId === listener.deviceId) listener.cap(notice.expiresAt);
    return;
  }
  if (!notice.deviceIds.includes(listener.deviceId)) return;
  if (notice.kind === 'revoked') listener.revoke();
  else listener.hint(hintOf(notice));
}

function hintOf(notice: Extract<Notice, { kind: 'timeline' | 'device-state' }>): Hint {
  if (notice.kind === 'timeline') {
    const { head } = notice;
    return { key: 'timeline', method: 'message.timeline.changed', params: { head }, rank: head };
  }
  const { revision } = notice;
  const method = 'device.state.changed';
  return { key: 'device-state', method, params: { revision }, rank: revision };
}
