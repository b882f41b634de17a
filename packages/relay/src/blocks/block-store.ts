/** SQL of what the operator refuses. Running relays read it by themselves. */
import type { AggregateKey, Reader, Row, Writer } from '../storage/types.ts';

/** What can be blocked. */
export type BlockKind = 'account' | 'address' | 'channel' | 'relay';

/** What the operator refuses. Times are Unix seconds. */
export interface Block {
  readonly kind: BlockKind;
  /** ID of an account, a channel or a relay; an address or a network as `writeRange` writes it. */
  readonly id: string;
  /** Empty if none was given. */
  readonly reason: string;
  readonly createdAt: number;
  /** Absent if it lasts until it is removed. */
  readonly endsAt: number | undefined;
}

/** What writes of blocks are serialized by. */
export const blockWrites: AggregateKey = 'blocks';

/**
 * Stores a block. If there is one, its end is replaced, and its reason if another one is given. The
 * write must hold {@link blockWrites}.
 *
 * @param at.now Unix seconds
 * @param at.limit the largest number of blocks of the kind
 * @returns whether it is new; `full` if there is no room for it
 */
export async function storeBlock(
  tx: Writer,
  { kind, id, reason, endsAt }: Omit<Block, 'createdAt'>,
  { now, limit }: { readonly now: number; readonly limit: number },
): Promise<'new' | 'replaced' | 'full'> {
  await tx.run(
    'DELETE FROM blocks WHERE kind = ? AND id = ? AND ends_at IS NOT NULL AND ends_at <= ?',
    kind,
    id,
    now,
  );
  const changed = await tx.run(
    `UPDATE blocks SET reason = CASE WHEN ? = '' THEN reason ELSE ? END, ends_at = ?
      WHERE kind = ? AND id = ?`,
    ...[reason, reason, endsAt ?? null, kind, id],
  );
  if (changed === 0) {
    const stored = await tx.get<{ blocked: number }>(
      `SELECT COUNT(*) AS blocked FROM blocks
        WHERE kind = ? AND (ends_at IS NULL OR ends_at > ?)`,
      kind,
      now,
    );
    if (Number(stored?.blocked) >= limit) return 'full';
    await tx.run(
      'INSERT INTO blocks (kind, id, reason, created_at, ends_at) VALUES (?, ?, ?, ?, ?)',
      ...[kind, id, reason, now, endsAt ?? null],
    );
  }
  await noteChange(tx);
  return changed === 0 ? 'new' : 'replaced';
}

/**
 * Removes a block. The write must hold {@link blockWrites}.
 *
 * @returns whether it was in force
 */
export async function deleteBlock(
  tx: Writer,
  { kind, id }: Pick<Block, 'kind' | 'id'>,
  now: number,
): Promise<boolean> {
  const block = await readBlock(tx, { kind, id }, now);
  await tx.run('DELETE FROM blocks WHERE kind = ? AND id = ?', kind, id);
  await noteChange(tx);
  return block !== undefined;
}

/** Removes up to `batchSize` blocks that have ended, and returns them. */
export async function deleteEnded(tx: Writer, now: number, batchSize: number): Promise<Block[]> {
  const rows = await tx.all<BlockRow>(
    `DELETE FROM blocks WHERE (kind, id) IN
      (SELECT kind, id FROM blocks WHERE ends_at IS NOT NULL AND ends_at <= ?
        ORDER BY ends_at LIMIT ?)
      RETURNING kind, id, reason, created_at AS "createdAt", ends_at AS "endsAt"`,
    now,
    batchSize,
  );
  return rows.map(blockOf);
}

/** Returns when the next block ends. */
export async function readNextEnd(tx: Reader): Promise<number | undefined> {
  const row = await tx.get<{ ends_at: number }>(
    'SELECT ends_at FROM blocks WHERE ends_at IS NOT NULL ORDER BY ends_at LIMIT 1',
  );
  return row?.ends_at;
}

/** Returns a block that is in force. */
export async function readBlock(
  tx: Reader,
  { kind, id }: Pick<Block, 'kind' | 'id'>,
  now: number,
): Promise<Block | undefined> {
  const row = await tx.get<BlockRow>(
    `SELECT kind, id, reason, created_at AS "createdAt", ends_at AS "endsAt" FROM blocks
      WHERE kind = ? AND id = ? AND (ends_at IS NULL OR ends_at > ?)`,
    kind,
    id,
    now,
  );
  return row && blockOf(row);
}

/** Where a page of blocks begins. */
export interface AfterBlock {
  readonly kind: string;
  readonly id: string;
}

/** Reads blocks that are in force, in the order of kind and ID; at most `limit`. */
export async function readBlocks(
  tx: Reader,
  now: number,
  page: { readonly after: AfterBlock | undefined; readonly limit: number },
): Promise<Block[]> {
  const rows = await tx.all<BlockRow>(
    `SELECT kind, id, reason, created_at AS "createdAt", ends_at AS "endsAt" FROM blocks
      WHERE (kind, id) > (?, ?) AND (ends_at IS NULL OR ends_at > ?) ORDER BY kind, id LIMIT ?`,
    ...[page.after?.kind ?? '', page.after?.id ?? '', now, page.limit],
  );
  return rows.map(blockOf);
}

/** Reads the blocks of one kind that are in force, the newest last; at most `limit`. */
export async function readBlocksOf(
  tx: Reader,
  kind: BlockKind,
  { now, limit }: { readonly now: number; readonly limit: number },
): Promise<Block[]> {
  const rows = await tx.all<BlockRow>(
    `SELECT kind, id, reason, created_at AS "createdAt", ends_at AS "endsAt" FROM blocks
      WHERE kind = ? AND (ends_at IS NULL OR ends_at > ?) ORDER BY created_at, id LIMIT ?`,
    ...[kind, now, limit],
  );
  return rows.map(blockOf);
}

/** Reads how often blocks were changed. */
export async function readChanges(tx: Reader): Promise<number> {
  const row = await tx.get<{ number: number }>('SELECT number FROM block_changes WHERE id = 0');
  return row?.number ?? 0;
}

async function noteChange(tx: Writer): Promise<void> {
  await tx.run(
    `INSERT INTO block_changes (id, number) VALUES (0, 1)
      ON CONFLICT (id) DO UPDATE SET number = block_changes.number + 1`,
  );
}

interface BlockRow extends Row {
  kind: string;
  id: string;
  reason: string;
  createdAt: number;
  endsAt: number | null;
}

function blockOf({ kind, id, reason, createdAt, endsAt }: BlockRow): Block {
  return { kind: kind as BlockKind, id, reason, createdAt, endsAt: endsAt ?? undefined };
}
