import type { Bus } from '../context.ts';
import type { Notice } from '../dispatch/notice.ts';
import type { ChannelListeners } from './channel-listeners.ts';
import type { GroupListeners } from './group-listeners.ts';
import { deviceStateHint, type Hint, timelineHint } from './hint.ts';
import type { Listener } from './listener.ts';

/** The listeners of topics that need a subscription. */
export interface ListenersByKind {
  readonly group: GroupListeners;
  readonly channel: ChannelListeners;
}

/** The connections of this process that are bound to a session; passes notices of the bus on to them. */
export class Hub implements Disposable {
  readonly listeners: ListenersByKind;
  readonly #byAccount = new Map<string, Set<Listener>>();
  readonly #subscription: Disposable;

  constructor(bus: Bus, subscribed: ListenersByKind) {
    this.listeners = subscribed;
    this.#subscription = bus.subscribe((notice) => this.notify(notice));
  }

  /** Adds a connection. */
  add(listener: Listener): void {
    const listeners = this.#byAccount.get(listener.account) ?? new Set();
    listeners.add(listener);
    this.#byAccount.set(listener.account, listeners);
  }

  /** Removes a connection. */
  remove(listener: Listener): void {
    const listeners = this.#byAccount.get(listener.account);
    listeners?.delete(listener);
    if (listeners?.size === 0) this.#byAccount.delete(listener.account);
  }

  /** Returns the accounts with connections to this process. */
  accounts(): string[] {
    return [...this.#byAccount.keys()];
  }

  /** Returns a copy of an account's connections: a revoked one is removed during iteration. */
  listenersOf(account: string): Listener[] {
    return [...(this.#byAccount.get(account) ?? [])];
  }

  /** Passes a notice on to the connections it concerns; called for every notice of the bus. */
  notify(notice: Notice): void {
    if ('account' in notice) this.#notifyAccount(notice);
    else if ('group' in notice) this.listeners.group.notify(notice);
    else if ('channel' in notice) this.listeners.channel.notify(notice);
  }

  [Symbol.dispose](): void {
    this.#subscription[Symbol.dispose]();
  }

  #notifyAccount(notice: Extract<Notice, { account: string }>): void {
    const listeners = this.listenersOf(notice.account);
    if (listeners.length === 0) return;
    if (notice.kind === 'capped') {
      for (const listener of listeners) {
        if (notice.deviceId === listener.deviceId) listener.cap(notice.expiresAt);
      }
      return;
    }
    if (notice.kind === 'ended') {
      const ended = new Set(notice.sessionIds);
      for (const listener of listeners) {
        if (ended.has(listener.session.id)) listener.revoke();
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
