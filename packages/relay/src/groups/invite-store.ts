/** All SQL of invitations and of the applications that rest on them. */
import type { Reader, Row, Writer } from '../storage/types.ts';

/** An invitation as stored at its acceptance. */
export interface StoredInvitation {
  readonly inviteId: string;
  readonly inviter: string;
  readonly expiresAt: number;
  /** Successful uses so far. */
  readonly uses: number;
  readonly revoked: boolean;
  readonly deviceId: string;
  readonly certificateId: string;
  /** Canonical JSON. */
  readonly invite: string;
}

interface InviteRow extends Row {
  invite_id: string;
  inviter: string;
  expires_at: number;
  uses: number;
  revoked: number;
  signer_device_id: string;
  certificate_id: string;
  invite: string;
}

const inviteColumns =
  'invite_id, inviter, expires_at, uses, revoked, signer_device_id, certificate_id, invite';

function toInvitation(row: InviteRow): StoredInvitation {
  return {
    inviteId: row.invite_id,
    inviter: row.inviter,
    expiresAt: row.expires_at,
    uses: row.uses,
    revoked: row.revoked === 1,
    deviceId: row.signer_device_id,
    certificateId: row.certificate_id,
    invite: row.invite,
  };
}

/** An invitation of any state that is still stored. */
export async function readInvite(
  tx: Reader,
  groupId: string,
  inviteId: string,
): Promise<StoredInvitation | undefined> {
  const row = await tx.get<InviteRow>(
    `SELECT ${inviteColumns} FROM group_invites WHERE group_id = ? AND invite_id = ?`,
    groupId,
    inviteId,
  );
  return row && toInvitation(row);
}

export async function insertInvite(
  tx: Writer,
  groupId: string,
  invite: Omit<StoredInvitation, 'uses' | 'revoked'>,
): Promise<void> {
  await tx.run(
    `INSERT INTO group_invites (group_id, invite_id, inviter, expires_at, uses, revoked, live,
        signer_device_id, certificate_id, invite)
      VALUES (?, ?, ?, ?, 0, 0, 1, ?, ?, ?)`,
    groupId,
    invite.inviteId,
    invite.inviter,
    invite.expiresAt,
    invite.deviceId,
    invite.certificateId,
    invite.invite,
  );
}

/** Whether an issuer has at least `most` invitations that are live. */
export async function hasManyInvites(
  tx: Reader,
  groupId: string,
  { inviter, most }: { readonly inviter: string; readonly most: number },
): Promise<boolean> {
  const row = await tx.get<{ found: number }>(
    `SELECT COUNT(*) AS found FROM (SELECT 1 FROM group_invites
      WHERE group_id = ? AND inviter = ? AND live = 1 LIMIT ?) AS some_invites`,
    groupId,
    inviter,
    most,
  );
  return (row?.found ?? 0) >= most;
}

/**
 * Valid invitations behind an ID, in the order of their IDs.
 * @param options `inviter`: those of one issuer only
 */
export async function readInvites(
  tx: Reader,
  groupId: string,
  options: {
    readonly inviter?: string | undefined;
    readonly after: string;
    readonly now: number;
    readonly most: number;
  },
): Promise<StoredInvitation[]> {
  const { inviter, after, now, most } = options;
  const own = inviter === undefined ? '' : 'AND inviter = ?';
  const rows = await tx.all<InviteRow>(
    `SELECT ${inviteColumns} FROM group_invites
      WHERE group_id = ? ${own} AND invite_id > ? AND live = 1 AND expires_at > ?
      ORDER BY invite_id LIMIT ?`,
    ...[groupId, ...(inviter === undefined ? [] : [inviter]), after, now, most],
  );
  return rows.map(toInvitation);
}

/** Counts uses; `isOver` where none is left. */
export async function addUses(
  tx: Writer,
  groupId: string,
  use: { readonly inviteId: string; readonly uses: number; readonly isOver: boolean },
): Promise<void> {
  await tx.run(
    'UPDATE group_invites SET uses = uses + ?, live = ? WHERE group_id = ? AND invite_id = ?',
    use.uses,
    use.isOver ? 0 : 1,
    groupId,
    use.inviteId,
  );
}

export async function revokeInvite(tx: Writer, groupId: string, inviteId: string): Promise<void> {
  await tx.run(
    'UPDATE group_invites SET revoked = 1, live = 0 WHERE group_id = ? AND invite_id = ?',
    groupId,
    inviteId,
  );
}

/** A pending application. */
export interface StoredApplication {
  readonly account: string;
  readonly inviteId: string;
  /** The device that signed it. */
  readonly deviceId: string;
  readonly certificateId: string;
  readonly acceptedAt: number;
  /** Canonical JSON. */
  readonly application: string;
}

const applicationColumns = `a.account, a.invite_id AS "inviteId", a.device_id AS "deviceId",
  a.certificate_id AS "certificateId", a.accepted_at AS "acceptedAt", a.application`;

/** The application of an account, whatever has become of its invitation. */
export async function readApplication(
  tx: Reader,
  groupId: string,
  account: string,
): Promise<StoredApplication | undefined> {
  return await tx.get<StoredApplication & Row>(
    `SELECT ${applicationColumns} FROM group_applications a
      WHERE a.group_id = ? AND a.account = ?`,
    groupId,
    account,
  );
}

/** Applications whose invitation is valid, behind an account, in the order of their accounts. */
export async function readApplications(
  tx: Reader,
  groupId: string,
  { after, now, most }: { readonly after: string; readonly now: number; readonly most: number },
): Promise<StoredApplication[]> {
  return await tx.all<StoredApplication & Row>(
    `SELECT ${applicationColumns} FROM group_applications a
      JOIN group_invites i ON i.group_id = a.group_id AND i.invite_id = a.invite_id
      WHERE a.group_id = ? AND a.account > ? AND i.live = 1 AND i.expires_at > ?
      ORDER BY a.account LIMIT ?`,
    groupId,
    after,
    now,
    most,
  );
}

/** Stores an application; an earlier one of the account is replaced. */
export async function writeApplication(
  tx: Writer,
  groupId: string,
  application: StoredApplication,
): Promise<void> {
  await tx.run(
    `INSERT INTO group_applications (group_id, account, invite_id, device_id, certificate_id,
        accepted_at, application)
      VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (group_id, account) DO UPDATE SET invite_id = excluded.invite_id,
        device_id = excluded.device_id, certificate_id = excluded.certificate_id,
        accepted_at = excluded.accepted_at, application = excluded.application`,
    groupId,
    application.account,
    application.inviteId,
    application.deviceId,
    application.certificateId,
    application.acceptedAt,
    application.application,
  );
}

/** Says whether there was one. */
export async function deleteApplication(
  tx: Writer,
  groupId: string,
  account: string,
): Promise<boolean> {
  const changed = await tx.run(
    'DELETE FROM group_applications WHERE group_id = ? AND account = ?',
    groupId,
    account,
  );
  return changed > 0;
}

/** Whether an application rests on an invitation. */
export async function hasApplications(
  tx: Reader,
  groupId: string,
  inviteId: string,
): Promise<boolean> {
  const row = await tx.get(
    'SELECT 1 AS found FROM group_applications WHERE group_id = ? AND invite_id = ? LIMIT 1',
    groupId,
    inviteId,
  );
  return row !== undefined;
}
