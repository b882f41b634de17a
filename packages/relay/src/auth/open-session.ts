import { ProtocolError, type SessionCredentials } from '@posthouse/protocol';
import type { RelayContext } from '../context.ts';
import type { AnyCall } from '../dispatch/call.ts';
import type { Notice } from '../dispatch/notice.ts';
import { newSecret, secretHash } from '../sessions/secrets.ts';
import type { AccountSession, DeviceSession, Session } from '../sessions/session.ts';
import {
  endOldestSessions,
  insertSession,
  readSessionRoom,
  type SessionSet,
} from '../sessions/session-store.ts';
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
type UnsavedSession = Omit<DeviceSession, 'id'> | Omit<AccountSession, 'id'>;

/** A session to open. */
export interface SessionToOpen {
  readonly facts: UnsavedSession;
  readonly origin: string;
  /** The session of the connection, if there is one. */
  readonly renewed: Session | undefined;
}

/**
 * Creates and stores a session for the origin of the call. Above `sessionsOfDevice` and
 * `sessionsOfAccount` the oldest sessions end, except the renewed one.
 *
 * @returns the session, and notices to publish after the commit
 * @throws ProtocolError `rate_limited` if the device opens too many in a minute
 */
export async function createSession(
  tx: Writer,
  context: Pick<RelayContext, 'clock' | 'limits' | 'random'>,
  { facts, origin, renewed }: SessionToOpen,
): Promise<{ readonly opened: OpenedSession; readonly notices: readonly Notice[] }> {
  const { limits } = context;
  const { account, mode } = facts;
  const now = context.clock.now();
  const own: SessionSet =
    mode === 'device'
      ? { kind: 'device', account, deviceId: facts.deviceId }
      : { kind: 'account', account };
  const since = now - 60;
  const { openedAt, ...room } = await readSessionRoom(tx, own, {
    ...{ since, now },
    limits: {
      openedRecently: limits.sessionsPerMinute,
      ofSet: limits.sessionsOfDevice,
      ofAccount: limits.sessionsOfAccount,
    },
  });
  if (openedAt !== undefined) throw tooManyOpened(openedAt - since);
  const except = renewed?.id;
  const others = except === undefined ? 1 : 2;
  const ended = [];
  for (const [set, isFull, limit] of [
    [own, room.isSetFull, limits.sessionsOfDevice],
    [{ kind: 'all', account }, room.isAccountFull, limits.sessionsOfAccount],
  ] as const) {
    if (!isFull) continue;
    const count = Math.max(0, limit - others);
    ended.push(...(await endOldestSessions(tx, set, { count, except })));
  }
  const token = newSecret(context.random);
  const session = { id: secretHash(token), ...facts };
  await insertSession(tx, { session, origin }, now);
  const notices: Notice[] =
    ended.length === 0 ? [] : [{ kind: 'ended', account, sessionIds: ended }];
  return { opened: { session, token }, notices };
}

function tooManyOpened(seconds: number): ProtocolError {
  const data = { retry_after: seconds };
  const text = 'too many sessions opened within a minute: keep the session and use it again';
  return new ProtocolError('rate_limited', text, { data });
}

/**
 * Binds an opened session to the call's connection, if there is one, and returns its credentials: the
 * last step of authentication. Reads it again for as long as sessions end meanwhile: its own end may be
 * committed after it, and announced before the connection is bound to it.
 *
 * @param changes `sessions.changes` before the session was opened
 * @returns `undefined` if the session has ended
 * @throws ProtocolError `unauthorized` if the bound session ended during its renewal
 */
export async function bindOpened(
  sessions: RelayContext['sessions'],
  call: Pick<AnyCall, 'connection'>,
  { opened, changes }: { readonly opened: OpenedSession; readonly changes: number },
): Promise<SessionCredentials | undefined> {
  let { session } = opened;
  for (let seen = changes; sessions.changes !== seen; ) {
    seen = sessions.changes;
    const confirmed = await sessions.confirm(session);
    if (confirmed === undefined) return undefined;
    session = confirmed;
  }
  // In the same step as the last look at the changes: no end may be announced between the two.
  checkRenewal(call, session);
  call.connection?.bind(session);
  return { token: opened.token, mode: session.mode, expires_at: session.expiresAt };
}
