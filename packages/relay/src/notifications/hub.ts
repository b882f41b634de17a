import type { Bus } from '../context.ts';
import type { Notice } from '../dispatch/notice.ts';
import type { ChannelListeners } from './channel-listeners.ts';
import type { GroupListeners } from './group-listeners.ts';
import { deviceStateHint, type Hint, timelineHint } from './hint.ts';
import type { Listener } from './listener.ts';

/** Who hears of what must be subscribed. */
export interface ListenersByKind {
  readonly group: GroupListeners;
  readonly channel: ChannelListeners;
}

/** Who is connected here, and who hears what. */
export class Hub implements Disposable {
  readonly listeners: ListenersByKind;
  readonly #byAccount = new Map<string, Set<Listener>>();
  readonly #subscription: Disposable;

  constructor(bus: Bus, subscribed: ListenersByKind) {
    this.listeners = subscribed;
    this.#subscription = bus.subscribe((notice) => this.notify(notice));
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
  notify(notice: Notice): void {
    if ('account' in notice) this.#tellAccount(notice);
    else if ('group' in notice) this.listeners.group.notify(notice);
    else if ('channel' in notice) this.listeners.channel.notify(notice);
  }

  [Symbol.dispose](): void {
    this.#subscription[Symbol.dispose]();
  }

  #tellAccount(notice: Extract<Notice, { account: string }>): void {
    const listeners = this.listenersOf(notice.account);
    if (listeners.length === 0) return;
    if (notice.kind === 'capped') {
      for (const listener of listeners) {
        if (notice.deviceId === listener.deviceId) listener.cap(notice.expiresAt);
      }
      return;
    }
    const hint = notice.kind === 'revoked' ? undefined : hintOf(notice);
    for (const listener of listeners) {
      if (!notice.deviceIds.includes(listener.deviceId)) continue;
      if (hint === undefined) listener.revoke();
      else listener.hint(hint);
    }
  }
}

function hintOf(notice: Extract<Notice, { kind: 'timeline' | 'device-state' }>): Hint {
  return notice.kind === 'timeline' ? timelineHint(notice.head) : deviceStateHint(notice.revision);
}
