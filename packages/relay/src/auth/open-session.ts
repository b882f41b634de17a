import { ProtocolError, type SessionCredentials } from '@posthouse/protocol';
import type { RelayContext } from '../context.ts';
import type { AnyCall } from '../dispatch/call.ts';
import { newSecret, secretHash } from '../sessions/secrets.ts';
import type { AccountSession, DeviceSession, Session } from '../sessions/session.ts';
import { insertSession } from '../sessions/session-store.ts';
import type { Writer } from '../storage/types.ts';

/** Who is being authenticated; `deviceId` once it is derived. */
export interface ClaimedIdentity {
  readonly mode: Session['mode'];
  readonly account: string;
  readonly deviceId?: string;
}

/**
 * On a connection that is bound already, only a renewal of the same identity is possible, and only
 * while its session is valid (02 §10.5, §10.6).
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

/** A session that is stored, and the only copy of its token. */
export interface OpenedSession {
  readonly session: Session;
  readonly token: string;
}

/** A session before it is stored. */
export type UnsavedSession = Omit<DeviceSession, 'id'> | Omit<AccountSession, 'id'>;

/** Stores a fresh session for the origin of the call. */
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
 * The last step of authentication: the session takes effect on the call's connection, where there
 * is one, and its credentials are what the method answers.
 *
 * @throws ProtocolError `unauthorized` where the bound session ended during its renewal
 */
export function bindSession(
  call: Pick<AnyCall, 'connection'>,
  { session, token }: OpenedSession,
): SessionCredentials {
  checkRenewal(call, session);
  call.connection?.bind(session);
  return { token, mode: session.mode, expires_at: session.expiresAt };
}
