import type { RelayContext } from '../context.ts';
import type { Notice } from '../dispatch/notice.ts';
import { type FairScheduler, pauseAfter } from './fair-scheduler.ts';
import { deviceStateHint, type Hint, timelineHint } from './hint.ts';
import type { Listener } from './listener.ts';

type AccountNotice = Extract<Notice, { account: string }>;
type HintNotice = Extract<AccountNotice, { kind: 'timeline' | 'device-state' }>;

/** Connections of an account that are notified at once; if it has more, all of them are in turns. */
const notifiedAtOnce = 4;

/** The connections of one account that are bound to a session. */
export class AccountListeners {
  readonly #clock: Pick<RelayContext['clock'], 'after' | 'monotonic'>;
  readonly #scheduler: FairScheduler;
  readonly #listeners = new Set<Listener>();
  /** The newest notice of each kind that the connections have not been notified of. */
  readonly #pending = new Map<HintNotice['kind'], HintNotice>();
  #isNotifying = false;

  constructor(clock: Pick<RelayContext['clock'], 'after' | 'monotonic'>, scheduler: FairScheduler) {
    this.#clock = clock;
    this.#scheduler = scheduler;
  }

  get size(): number {
    return this.#listeners.size;
  }

  add(listener: Listener): void {
    this.#listeners.add(listener);
  }

  delete(listener: Listener): void {
    this.#listeners.delete(listener);
  }

  /** Returns a copy. */
  all(): Listener[] {
    return [...this.#listeners];
  }

  /** Passes a notice on to the connections of the devices that it names. */
  notify(notice: AccountNotice): void {
    switch (notice.kind) {
      case 'capped':
        for (const listener of this.#listeners) {
          if (notice.deviceId === listener.deviceId) listener.cap(notice.expiresAt);
        }
        return;
      case 'ended': {
        const ended = new Set(notice.sessionIds);
        this.#revoke(({ session }) => ended.has(session.id));
        return;
      }
      case 'revoked':
        this.#revoke(({ deviceId }) => notice.deviceIds.includes(deviceId));
        return;
      default:
        this.#hint(notice);
    }
  }

  #revoke(isMeant: (listener: Listener) => boolean): void {
    for (const listener of this.all()) if (isMeant(listener)) listener.revoke();
  }

  #hint(notice: HintNotice): void {
    if (!this.#isNotifying && this.size <= notifiedAtOnce) {
      const hint = hintOf(notice);
      for (const listener of this.#listeners) passHint(listener, notice, hint);
      return;
    }
    const known = this.#pending.get(notice.kind);
    if (known !== undefined && rankOf(known) > rankOf(notice)) return;
    this.#pending.set(notice.kind, notice);
    if (!this.#isNotifying) void this.#notifyAll();
  }

  /** Notices that arrive meanwhile are merged: the newest names the devices that are valid now. */
  async #notifyAll(): Promise<void> {
    this.#isNotifying = true;
    while (this.#pending.size > 0) {
      const began = this.#clock.monotonic();
      const pending = [...this.#pending.values()].map(
        (notice) => [notice, hintOf(notice)] as const,
      );
      this.#pending.clear();
      await this.#scheduler.each(this.#listeners, (listener) => {
        // It may have left while it waited.
        if (!this.#listeners.has(listener)) return;
        for (const [notice, hint] of pending) passHint(listener, notice, hint);
      });
      // Each hint makes devices read: leave half of the time to other calls.
      await pauseAfter(this.#clock, began);
    }
    this.#isNotifying = false;
  }
}

function rankOf(notice: HintNotice): number {
  return notice.kind === 'timeline' ? notice.head : notice.revision;
}

function hintOf(notice: HintNotice): Hint {
  return notice.kind === 'timeline' ? timelineHint(notice.head) : deviceStateHint(notice.revision);
}

function passHint(listener: Listener, { deviceIds }: HintNotice, hint: Hint): void {
  if (deviceIds.includes(listener.deviceId)) listener.hint(hint);
}
