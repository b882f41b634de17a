/** All SQL of relay secrets, client secret boxes and staged rotations. */
import type { RotationStaging } from '@posthouse/protocol';
import { chunks, placeholders } from '../../storage/in-lists.ts';
import type { Reader, Row, Statement, Writer } from '../../storage/types.ts';

/** A key version: the relay's secret, and which client boxes go with it. */
export interface NewEpoch {
  readonly epoch: number;
  /** 32 bytes, base64url. */
  readonly relaySecret: string;
  readonly boxSet: number;
  /** Unix seconds; stored at least until then, and while it is current. */
  readonly keepUntil: number;
}

/** Begins an epoch; the one before is superseded and can expire. */
export async function insertEpoch(tx: Writer, groupId: string, epoch: NewEpoch): Promise<void> {
  await tx.run(
    'UPDATE group_epochs SET superseded = 1 WHERE group_id = ? AND epoch = ?',
    groupId,
    epoch.epoch - 1,
  );
  await tx.run(
    `INSERT INTO group_epochs (group_id, epoch, relay_secret, box_set, keep_until, superseded)
      VALUES (?, ?, ?, ?, ?, 0)`,
    groupId,
    epoch.epoch,
    epoch.relaySecret,
    epoch.boxSet,
    epoch.keepUntil,
  );
}

/** Extends the retention of an epoch to that of a message in it (05 §11.3). */
export function keepEpoch(
  groupId: string,
  { epoch, keepUntil }: { readonly epoch: number; readonly keepUntil: number },
): Statement {
  return [
    `UPDATE group_epochs SET keep_until = ?
      WHERE group_id = ? AND epoch = ? AND keep_until < ?`,
    keepUntil,
    groupId,
    epoch,
    keepUntil,
  ];
}

/** An epoch's relay secret with the box that serves one member in it. */
export interface StoredKey {
  readonly epoch: number;
  /** 32 bytes, base64url. */
  readonly relaySecret: string;
  readonly boxSet: number;
  /** `null` if the account has no box. */
  readonly fromEpoch: number | null;
}

/**
 * Reads the retained epochs from one to another, both inclusive, ascending. A member's box in an
 * epoch is the newest one in force by then (05 §7.4).
 */
export async function readKeys(
  tx: Reader,
  groupId: string,
  {
    account,
    from,
    to,
    limit,
  }: {
    readonly account: string;
    readonly from: number;
    readonly to: number;
    readonly limit: number;
  },
): Promise<StoredKey[]> {
  return await tx.all<StoredKey & Row>(
    `SELECT e.epoch, e.relay_secret AS "relaySecret", e.box_set AS "boxSet",
        (SELECT b.from_epoch FROM group_boxes b
          WHERE b.group_id = e.group_id AND b.box_set = e.box_set AND b.account = ?
            AND b.from_epoch <= e.epoch
          ORDER BY b.from_epoch DESC LIMIT 1) AS "fromEpoch"
      FROM group_epochs e WHERE e.group_id = ? AND e.epoch >= ? AND e.epoch <= ?
      ORDER BY e.epoch LIMIT ?`,
    account,
    groupId,
    from,
    to,
    limit,
  );
}

/** A member's box in a set, and the epoch from which on it is in force. */
export interface BoxKey {
  readonly boxSet: number;
  readonly account: string;
  readonly fromEpoch: number;
}

/** Stores a box; it replaces one of the same member and epoch. */
export async function writeBox(
  tx: Writer,
  groupId: string,
  { boxSet, account, fromEpoch, box }: BoxKey & { readonly box: string },
): Promise<void> {
  await tx.run(
    `INSERT INTO group_boxes (group_id, box_set, account, from_epoch, box) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (group_id, box_set, account, from_epoch) DO UPDATE SET box = excluded.box`,
    groupId,
    boxSet,
    account,
    fromEpoch,
    box,
  );
}

/** Reads the Canonical JSON of a box. */
export async function readBox(
  tx: Reader,
  groupId: string,
  { boxSet, account, fromEpoch }: BoxKey,
): Promise<string | undefined> {
  const row = await tx.get<{ box: string }>(
    `SELECT box FROM group_boxes
      WHERE group_id = ? AND box_set = ? AND account = ? AND from_epoch = ?`,
    groupId,
    boxSet,
    account,
    fromEpoch,
  );
  return row?.box;
}

/** Counts the accounts, all different, that have a box in a staged set. */
export async function countStagedBoxes(
  tx: Reader,
  groupId: string,
  { boxSet, accounts }: { readonly boxSet: number; readonly accounts: readonly string[] },
): Promise<number> {
  let count = 0;
  for (const some of chunks(accounts)) {
    const rows = await tx.all(
      `SELECT account FROM group_boxes
        WHERE group_id = ? AND box_set = ? AND from_epoch = 0 AND account IN (${placeholders(some)})`,
      groupId,
      boxSet,
      ...some,
    );
    count += rows.length;
  }
  return count;
}

/** A staged rotation without its boxes (05 §13.26). */
export interface StoredStaging extends RotationStaging {
  readonly boxSet: number;
}

export async function readStaging(tx: Reader, groupId: string): Promise<StoredStaging | undefined> {
  return await tx.get<StoredStaging & Row>(
    `SELECT account, base_commitment, commitment AS client_secret_commitment, expires_at,
        box_set AS "boxSet", box_count AS "boxCount"
      FROM group_stagings WHERE group_id = ?`,
    groupId,
  );
}

export async function writeStaging(
  tx: Writer,
  groupId: string,
  staging: StoredStaging,
): Promise<void> {
  await tx.run(
    `INSERT INTO group_stagings (group_id, account, base_commitment, commitment, expires_at,
        box_set, box_count)
      VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (group_id) DO UPDATE SET account = excluded.account,
        base_commitment = excluded.base_commitment, commitment = excluded.commitment,
        expires_at = excluded.expires_at, box_set = excluded.box_set,
        box_count = excluded.box_count, cleared = 0`,
    groupId,
    staging.account,
    staging.base_commitment,
    staging.client_secret_commitment,
    staging.expires_at,
    staging.boxSet,
    staging.boxCount,
  );
}

export async function deleteStaging(tx: Writer, groupId: string): Promise<void> {
  await tx.run('DELETE FROM group_stagings WHERE group_id = ?', groupId);
}

/** Deletes a member's box from a staged set; returns whether there was one. */
export async function deleteStagedBox(
  tx: Writer,
  groupId: string,
  { boxSet, account }: Pick<BoxKey, 'boxSet' | 'account'>,
): Promise<boolean> {
  const changed = await tx.run(
    'DELETE FROM group_boxes WHERE group_id = ? AND box_set = ? AND account = ?',
    groupId,
    boxSet,
    account,
  );
  return changed > 0;
}

/** Marks a set as dropped; a job deletes its boxes. */
export async function dropSet(tx: Writer, groupId: string, boxSet: number): Promise<void> {
  await tx.run(
    `INSERT INTO group_dropped_sets (group_id, box_set) VALUES (?, ?)
      ON CONFLICT (group_id, box_set) DO NOTHING`,
    groupId,
    boxSet,
  );
}
