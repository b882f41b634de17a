import type { Clock } from '../context.ts';
import type { ConnectionBinding, SubscriptionKind } from '../dispatch/call.ts';
import type { Hint } from '../notifications/hint.ts';
import { HintQueue, type HintQueueParts } from '../notifications/hint-queue.ts';
import type { Hub } from '../notifications/hub.ts';
import type { Listener } from '../notifications/listener.ts';
import { Subscriptions } from '../notifications/subscriptions.ts';
import type { Session } from '../sessions/session.ts';

export interface BoundSessionParts {
  readonly hub: Hub;
  readonly clock: Pick<Clock, 'now'>;
  readonly send: HintQueueParts['send'];
  readonly beforeWrite: HintQueueParts['beforeWrite'];
}

/**
 * The session that a connection is bound to, renewed in place, with the connection's subscriptions
 * and unsent hints (02 §10.5, §12.3, §13).
 */
export class BoundSession implements Listener {
  readonly #parts: BoundSessionParts;
  readonly #hints: HintQueue;
  readonly #subscriptions: Readonly<Record<SubscriptionKind, Subscriptions>>;
  #session: Session;
  #isRevoked = false;
  #isEnabled = false;
  #isReleased = false;

  constructor(session: Session, parts: BoundSessionParts) {
    this.#session = session;
    this.#parts = parts;
    const { hub, send, beforeWrite } = parts;
    const mayPush = () => this.#isEnabled && !this.#isReleased && !this.dead;
    this.#hints = new HintQueue({ send, beforeWrite, mayPush });
    const subscriptions = (kind: SubscriptionKind) =>
      new Subscriptions({
        ...{ kind, listener: this, hints: this.#hints },
        listeners: hub.listeners[kind],
      });
    this.#subscriptions = { group: subscriptions('group'), channel: subscriptions('channel') };
    // The end of the session must reach it from now on; hints only after enable().
    hub.add(this);
  }

  get session(): Session {
    return this.#session;
  }

  /** Expired or revoked; the connection cannot be used for this account again. */
  get dead(): boolean {
    return this.#isRevoked || this.#parts.clock.now() >= this.#session.expiresAt;
  }

  get account(): string {
    return this.#session.account;
  }

  /** @see Listener */
  get deviceId(): string {
    return this.#session.mode === 'device' ? this.#session.deviceId : '';
  }

  /** Replaces the session by one of the same identity with a later expiry (02 §10.6). */
  renew(session: Session): void {
    this.#session = session;
  }

  /** Enables hints; called after the response that announced the session (02 §12.5). */
  enable(): void {
    this.#isEnabled = true;
  }

  /** @see Listener */
  hint(hint: Hint): void {
    this.#hints.push(hint);
  }

  /** @see ConnectionBinding */
  async setSubscriptions(
    ...[request, confirm]: Parameters<ConnectionBinding['setSubscriptions']>
  ): Promise<void> {
    await this.#subscriptions[request.kind].replace(request, confirm);
  }

  /** @see Listener */
  drop(id: string): void {
    this.#hints.forget(id);
  }

  /** @see Listener */
  leave(kind: SubscriptionKind, id: string): void {
    this.#subscriptions[kind].leave(id);
  }

  /** @see Listener */
  revoke(): void {
    this.#isRevoked = true;
    this.release();
  }

  /** @see Listener */
  cap(expiresAt: number): void {
    if (expiresAt < this.#session.expiresAt) this.#session = { ...this.#session, expiresAt };
  }

  /** Removes it from the hub, and ends its subscriptions soon; the connection or the session ended. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    const all = Object.values(this.#subscriptions);
    for (const subscriptions of all) subscriptions.stop();
    this.#hints.clear();
    this.#parts.hub.remove(this);
    this.#parts.hub.endSoon(() => {
      for (const subscriptions of all) subscriptions.end();
    });
  }
}
