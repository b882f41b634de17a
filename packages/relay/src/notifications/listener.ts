import type { SubscriptionKind } from '../dispatch/call.ts';
import type { Session } from '../sessions/session.ts';
import type { Hint } from './hint.ts';

/** A connection that is bound to a session. */
export interface Listener {
  readonly account: string;
  /** Empty for an account session: no hint and no removal of a device concerns it. */
  readonly deviceId: string;
  /** The current session; a renewal replaces it. */
  readonly session: Pick<Session, 'id' | 'expiresAt'>;
  /** Sends a hint, or drops it if the session is no longer valid (02 §12.3). */
  hint(hint: Hint): void;
  /** Ends the session: no pushes, no subscriptions, a dead binding (02 §10.3, §10.5). */
  revoke(): void;
  /** Shortens the session to end at `expiresAt` at the latest. */
  cap(expiresAt: number): void;
  /** Drops its unsent hints of a group or channel; the subscription stays. */
  drop(id: string): void;
  /** Ends its subscription of a group or a channel. */
  leave(kind: SubscriptionKind, id: string): void;
}
