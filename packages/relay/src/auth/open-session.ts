import { ProtocolError, type SessionCredentials } from '@posthouse/protocol';
import type { RelayContext } from '../context.ts';
import type { AnyCall } from '../dispatch/call.ts';
import { newSecret, secretHash } from '../sessions/secrets.ts';
import type { AccountSession, DeviceSession, Session } from '../sessions/session.ts';
import { insertSession } from '../sessions/session-store.ts';
import type { Writer } from '../storage/types.ts';

/** The identity that is being authenticated; `deviceId` once it is derived. */
export interface ClaimedIdentity {
  readonly mode: Session['mode'];
  readonly account: string;
  readonly deviceId?: string;
}

/**
 * Refuses authentication on a bound connection unless it renews the same identity while its session
 * is valid (02 §10.5, §10.6).
 *
 * @throws ProtocolError `unauthorized` on a dead binding, `forbidden` for another identity
 */
export function checkRenewal(call: Pick<AnyCall, 'connection'>, claim: ClaimedIdentity): void {
  const bound = call.connection?.bound;
  if (bound === undefined) return;
  if (bound.dead) throw new ProtocolError('unauthorized', 'the session of the connection ended');
  const { session } = bound;
  const sameDevice =
    session.mode === 'account' ||
    claim.deviceId === undefined ||
    claim.deviceId === session.deviceId;
  if (session.mode !== claim.mode || session.account !== claim.account || !sameDevice) {
    throw new ProtocolError('forbidden', 'the connection is bound to another identity');
  }
}

/** A stored session with its token, which is not stored. */
export interface OpenedSession {
  readonly session: Session;
  readonly token: string;
}

/** A session before it is stored. */
export type UnsavedSession = Omit<DeviceSession, 'id'> | Omit<AccountSession, 'id'>;

/** Creates and stores a session for the origin of the call. */
export async function createSession(
  tx: Writer,
  context: Pick<RelayContext, 'random'>,
  { facts, origin }: { readonly facts: UnsavedSession; readonly origin: string },
): Promise<OpenedSession> {
  const token = newSecret(context.random);
  const session = { id: secretHash(token), ...facts };
  await insertSession(tx, { session, origin });
  return { session, token };
}

/**
 * Binds the session to the call's connection, if there is one, and returns its credentials: the
 * last step of authentication.
 *
 * @throws ProtocolError `unauthorized` if the bound session ended during its renewal
 */
export function bindSession(
  call: Pick<AnyCall, 'connection'>,
  { session, token }: OpenedSession,
): SessionCredentials {
  checkRenewal(call, session);
  call.connection?.bind(session);
  return { token, mode: session.mode, expires_at: session.expiresAt };
}
