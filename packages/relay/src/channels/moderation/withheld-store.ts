/** All SQL that moves withheld posts out of a timeline and back. */
import type { Reader, Row, Writer } from '../../storage/types.ts';
import type { EventKey } from '../retention-store.ts';

const columns = `channel_id, sequence, kind, descriptor_rev, target, accepted_at, keep_until,
  clear_after, signer_device_id, bytes, payload`;

/** Tables that a move reads from and writes to. */
const directions = {
  out: { from: 'channel_events', to: 'channel_withheld_events' },
  back: { from: 'channel_withheld_events', to: 'channel_events' },
} as const;
type MoveDirection = keyof typeof directions;

/** Moves a post without its edits. */
export async function movePost(
  tx: Writer,
  direction: MoveDirection,
  { channelId, sequence }: EventKey,
): Promise<void> {
  const { from, to } = directions[direction];
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

/** Moves up to `batchSize` edits of a post; returns how many. */
export async function moveEdits(
  tx: Writer,
  direction: MoveDirection,
  { channelId, sequence, batchSize }: EventKey & { readonly batchSize: number },
): Promise<number> {
  const { from, to } = directions[direction];
  const batch = `SELECT sequence FROM ${from}
    WHERE channel_id = ? AND kind = 'edit' AND target = ? ORDER BY sequence LIMIT ?`;
  const values = [channelId, channelId, sequence, batchSize];
  await tx.run(
    `INSERT INTO ${to} (${columns}) SELECT ${columns} FROM ${from}
      WHERE channel_id = ? AND sequence IN (${batch})`,
    ...values,
  );
  return await tx.run(
    `DELETE FROM ${from} WHERE channel_id = ? AND sequence IN (${batch})`,
    ...values,
  );
}

/** Sets since when a post is withheld; `null` if it is not. */
export async function setWithheld(
  tx: Writer,
  { channelId, sequence }: EventKey,
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
export interface WithheldPost extends EventKey {
  /** The account that published it. */
  readonly account: string;
  /** Unix seconds, as `keepUntil`. */
  readonly withheldAt: number;
  /** The post's deadline. */
  readonly keepUntil: number;
}

interface WithheldRow extends Row {
  channel_id: string;
  sequence: number;
  account: string;
  withheld_at: number;
  keep_until: number;
}

/** The order of withheld posts: by time, channel and sequence. */
export type WithheldPosition = readonly [at: number, channelId: string, sequence: number];

/** After the post that was withheld last. */
export const lastWithheld: WithheldPosition = [Number.MAX_SAFE_INTEGER, '', 0];

/** Reads posts withheld before a position, the newest first. */
export async function readWithheld(
  tx: Reader,
  { before, limit }: { readonly before: WithheldPosition; readonly limit: number },
): Promise<WithheldPost[]> {
  const rows = await tx.all<WithheldRow>(
    `SELECT channel_id, sequence, account, withheld_at, keep_until FROM channel_posts
      WHERE withheld_at IS NOT NULL AND (withheld_at, channel_id, sequence) < (?, ?, ?)
      ORDER BY withheld_at DESC, channel_id DESC, sequence DESC LIMIT ?`,
    ...before,
    limit,
  );
  return rows.map((row) => ({
    channelId: row.channel_id,
    sequence: row.sequence,
    account: row.account,
    withheldAt: row.withheld_at,
    keepUntil: row.keep_until,
  }));
}
