/** All SQL of invitations. */
import type { StoredInvite } from '@posthouse/protocol';
import { chunks, placeholders } from '../../storage/in-lists.ts';
import type { Reader, Row, Writer } from '../../storage/types.ts';

/** An invitation without its text, which may be large. */
export interface StoredInvitation extends StoredInvite {
  readonly inviteId: string;
  readonly inviter: string;
  /** Number of pending applications that use it. */
  readonly pending: number;
  /** The device that signed it. */
  readonly deviceId: string;
  readonly certificateId: string;
}

interface InviteRow extends Row {
  invite_id: string;
  inviter: string;
  invitee: string | null;
  max_uses: number | null;
  expires_at: number;
  uses: number;
  revoked: number;
  pending: number;
  signer_device_id: string;
  certificate_id: string;
}

const columns = `invite_id, inviter, invitee, max_uses, expires_at, uses, revoked, pending,
  signer_device_id, certificate_id`;

function toInvitation(row: InviteRow): StoredInvitation {
  return {
    ...toInvite(row),
    inviteId: row.invite_id,
    inviter: row.inviter,
    pending: row.pending,
    deviceId: row.signer_device_id,
    certificateId: row.certificate_id,
  };
}

/** Reads from a row what decides whether an invitation can be used. */
function toInvite(
  row: Pick<InviteRow, 'invitee' | 'max_uses' | 'expires_at' | 'uses' | 'revoked'>,
): StoredInvite {
  const { invitee, max_uses, expires_at } = row;
  return {
    invite: {
      expires_at,
      ...(invitee !== null && { invitee }),
      ...(max_uses !== null && { max_uses }),
    },
    uses: row.uses,
    revoked: row.revoked === 1,
  };
}

/** Reads stored invitations of any state, by ID. */
export async function readInvites(
  tx: Reader,
  groupId: string,
  inviteIds: readonly string[],
): Promise<ReadonlyMap<string, StoredInvitation>> {
  const found = new Map<string, StoredInvitation>();
  for (const batch of chunks(inviteIds)) {
    const rows = await tx.all<InviteRow>(
      `SELECT ${columns} FROM group_invites
        WHERE group_id = ? AND invite_id IN (${placeholders(batch)})`,
      groupId,
      ...batch,
    );
    for (const row of rows) found.set(row.invite_id, toInvitation(row));
  }
  return found;
}

/** Reads a stored invitation of any state. */
export async function readInvite(
  tx: Reader,
  groupId: string,
  inviteId: string,
): Promise<StoredInvitation | undefined> {
  return (await readInvites(tx, groupId, [inviteId])).get(inviteId);
}

/** Reads the Canonical JSON of stored invitations, by ID. */
export async function readInviteTexts(
  tx: Reader,
  groupId: string,
  inviteIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  for (const some of chunks(inviteIds)) {
    const rows = await tx.all<{ invite_id: string; invite: string }>(
      `SELECT invite_id, invite FROM group_invites
        WHERE group_id = ? AND invite_id IN (${placeholders(some)})`,
      groupId,
      ...some,
    );
    for (const { invite_id, invite } of rows) texts.set(invite_id, invite);
  }
  return texts;
}

/** Stores a new invitation. */
export async function insertInvite(
  tx: Writer,
  groupId: string,
  stored: Pick<StoredInvitation, 'invite' | 'inviteId' | 'inviter' | 'deviceId' | 'certificateId'>,
  text: string,
): Promise<void> {
  const { invitee = null, max_uses = null, expires_at } = stored.invite;
  await tx.run(
    `INSERT INTO group_invites (group_id, invite_id, inviter, invitee, max_uses, expires_at, uses,
        revoked, live, pending, signer_device_id, certificate_id, bytes, invite)
      VALUES (?, ?, ?, ?, ?, ?, 0, 0, 1, 0, ?, ?, ?, ?)`,
    groupId,
    stored.inviteId,
    stored.inviter,
    invitee,
    max_uses,
    expires_at,
    stored.deviceId,
    stored.certificateId,
    Buffer.byteLength(text),
    text,
  );
}

/** Returns whether an issuer has at least `limit` invitations that can be used. */
export async function hasManyInvites(
  tx: Reader,
  groupId: string,
  {
    inviter,
    now,
    limit,
  }: { readonly inviter: string; readonly now: number; readonly limit: number },
): Promise<boolean> {
  const row = await tx.get<{ found: number }>(
    `SELECT COUNT(*) AS found FROM (SELECT 1 FROM group_invites
      WHERE group_id = ? AND inviter = ? AND live = 1 AND expires_at > ? LIMIT ?) AS some_invites`,
    groupId,
    inviter,
    now,
    limit,
  );
  return (row?.found ?? 0) >= limit;
}

/** An invitation of a list, with the certificate it was accepted with. */
export interface ListedInvitation {
  readonly inviteId: string;
  readonly uses: number;
  readonly deviceId: string;
  /** Of its text. */
  readonly bytes: number;
  /** Canonical JSON. */
  readonly certificate: string;
}

/**
 * Lists invitations that can be used, after an ID, in the order of their IDs.
 * @param options `inviter`: those of one issuer only
 */
export async function listInvites(
  tx: Reader,
  groupId: string,
  options: {
    readonly inviter?: string | undefined;
    readonly after: string;
    readonly now: number;
    readonly limit: number;
  },
): Promise<ListedInvitation[]> {
  const { inviter, after, now, limit } = options;
  return await tx.all<ListedInvitation & Row>(
    `SELECT i.invite_id AS "inviteId", i.uses, i.signer_device_id AS "deviceId", i.bytes,
        c.certificate
      FROM group_invites i
        JOIN group_certificates c
          ON c.group_id = i.group_id AND c.certificate_id = i.certificate_id
      WHERE i.group_id = ? ${inviter === undefined ? '' : 'AND i.inviter = ?'}
        AND i.invite_id > ? AND i.live = 1 AND i.expires_at > ?
      ORDER BY i.invite_id LIMIT ?`,
    ...[groupId, ...(inviter === undefined ? [] : [inviter]), after, now, limit],
  );
}

/** How often an approval uses an invitation. */
export interface InviteUse {
  readonly inviteId: string;
  readonly uses: number;
  /** Whether no use is left afterwards. */
  readonly isOver: boolean;
}

/**
 * Columns of an ended invitation. Its text, which may be large, is deleted because no call reads it
 * any more (05 §8.1); its row stays for a while.
 */
export const endOfInvite = `live = 0, bytes = 0, invite = ''`;

/** Adds uses to an invitation, and ends it with the last one. */
export async function addUses(tx: Writer, groupId: string, use: InviteUse): Promise<void> {
  await tx.run(
    `UPDATE group_invites SET uses = uses + ?${use.isOver ? `, ${endOfInvite}` : ''}
      WHERE group_id = ? AND invite_id = ?`,
    use.uses,
    groupId,
    use.inviteId,
  );
}

/** Revokes an invitation. */
export async function revokeInvite(tx: Writer, groupId: string, inviteId: string): Promise<void> {
  await tx.run(
    `UPDATE group_invites SET revoked = 1, ${endOfInvite} WHERE group_id = ? AND invite_id = ?`,
    groupId,
    inviteId,
  );
}

/** Changes the number of pending applications that use an invitation. */
export async function addPending(
  tx: Writer,
  groupId: string,
  { inviteId, by }: { readonly inviteId: string; readonly by: number },
): Promise<void> {
  await tx.run(
    'UPDATE group_invites SET pending = pending + ? WHERE group_id = ? AND invite_id = ?',
    by,
    groupId,
    inviteId,
  );
}

/**
 * Lists usable invitations with pending applications, from an ID on, in the order of their IDs, with
 * the number of applications of each.
 */
export async function listAwaited(
  tx: Reader,
  groupId: string,
  { from, now, limit }: { readonly from: string; readonly now: number; readonly limit: number },
): Promise<{ readonly inviteId: string; readonly pending: number }[]> {
  return await tx.all<{ inviteId: string; pending: number }>(
    `SELECT invite_id AS "inviteId", pending FROM group_invites
      WHERE group_id = ? AND invite_id >= ? AND live = 1 AND pending > 0 AND expires_at > ?
      ORDER BY invite_id LIMIT ?`,
    groupId,
    from,
    now,
    limit,
  );
}
