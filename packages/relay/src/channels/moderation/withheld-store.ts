/** All SQL that takes posts out of a timeline at the operator's word, and puts them back. */
import type { Reader, Row, Writer } from '../../storage/types.ts';
import type { EventPosition } from '../retention-store.ts';

const columns = `channel_id, sequence, kind, descriptor_rev, target, accepted_at, keep_until,
  clear_after, signer_device_id, bytes, payload`;

/** Where events go, and where they are. */
const directions = {
  out: { from: 'channel_events', to: 'channel_withheld_events' },
  back: { from: 'channel_withheld_events', to: 'channel_events' },
} as const;
type MoveDirection = keyof typeof directions;

/** Moves a post without its edits. */
export async function movePost(
  tx: Writer,
  way: MoveDirection,
  { channelId, sequence }: EventPosition,
): Promise<void> {
  const { from, to } = directions[way];
  await tx.run(
    `INSERT INTO ${to} (${columns}) SELECT ${columns} FROM ${from}
      WHERE channel_id = ? AND sequence = ? AND kind = 'post'`,
    channelId,
    sequence,
  );
  await tx.run(
    `DELETE FROM ${from} WHERE channel_id = ? AND sequence = ? AND kind = 'post'`,
    channelId,
    sequence,
  );
}

/** Moves edits of a post, `portion` at the most; says how many. */
export async function moveEdits(
  tx: Writer,
  way: MoveDirection,
  { channelId, sequence, portion }: EventPosition & { readonly portion: number },
): Promise<number> {
  const { from, to } = directions[way];
  const some = `SELECT sequence FROM ${from}
    WHERE channel_id = ? AND kind = 'edit' AND target = ? ORDER BY sequence LIMIT ?`;
  const values = [channelId, channelId, sequence, portion];
  await tx.run(
    `INSERT INTO ${to} (${columns}) SELECT ${columns} FROM ${from}
      WHERE channel_id = ? AND sequence IN (${some})`,
    ...values,
  );
  return await tx.run(
    `DELETE FROM ${from} WHERE channel_id = ? AND sequence IN (${some})`,
    ...values,
  );
}

/** Notes since when a post is withheld, or that it is not. */
export async function setWithheld(
  tx: Writer,
  { channelId, sequence }: EventPosition,
  withheldAt: number | null,
): Promise<void> {
  await tx.run(
    'UPDATE channel_posts SET withheld_at = ? WHERE channel_id = ? AND sequence = ?',
    withheldAt,
    channelId,
    sequence,
  );
}

/** A post that is withheld. */
export interface WithheldPost extends EventPosition {
  /** Who published it. */
  readonly account: string;
  /** Unix seconds, as `keepUntil`. */
  readonly withheldAt: number;
  /** When it is removed. */
  readonly keepUntil: number;
}

interface WithheldRow extends Row {
  channel_id: string;
  sequence: number;
  account: string;
  withheld_at: number;
  keep_until: number;
}

/** Posts that are withheld, those of last, the last one last. */
export async function readWithheld(tx: Reader, most: number): Promise<WithheldPost[]> {
  const rows = await tx.all<WithheldRow>(
    `SELECT channel_id, sequence, account, withheld_at, keep_until FROM channel_posts
      WHERE withheld_at IS NOT NULL
      ORDER BY withheld_at DESC, channel_id DESC, sequence DESC LIMIT ?`,
    most,
  );
  return rows.reverse().map((row) => ({
    channelId: row.channel_id,
    sequence: row.sequence,
    account: row.account,
    withheldAt: row.withheld_at,
    keepUntil: row.keep_until,
  }));
}
