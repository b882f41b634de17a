import type { SubscriptionKind } from '../dispatch/call.ts';
import type { DeviceSession } from '../sessions/session.ts';
import type { Hint } from './hint.ts';

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
  /** Ends its subscription of a group or a channel. */
  leave(kind: SubscriptionKind, id: string): void;
}
