/** The last time at which the relay is known to have run, by which a wrong clock is noticed. */
import type { Migration, Reader, Row, Writer } from './types.ts';

export const clockMigration: Migration = {
  id: 3,
  name: 'mark of the clock',
  statements: [
    `CREATE TABLE relay_clock (
      slot BIGINT NOT NULL PRIMARY KEY CHECK (slot = 1),
      seen_at BIGINT NOT NULL,
      paused_until BIGINT
    )`,
  ],
};

export interface ClockMark {
  /** The last time that was trusted, Unix seconds. */
  readonly seenAt: number;
  /** Until when nothing is deleted, Unix seconds of the clock that is not trusted yet. */
  readonly pausedUntil?: number | undefined;
}

interface MarkRow extends Row {
  seen_at: number;
  paused_until: number | null;
}

/** Returns the mark; `undefined` before the first start. */
export async function readClockMark(tx: Reader): Promise<ClockMark | undefined> {
  const row = await tx.get<MarkRow>('SELECT seen_at, paused_until FROM relay_clock WHERE slot = 1');
  return row && { seenAt: row.seen_at, pausedUntil: row.paused_until ?? undefined };
}

/** Stores the mark in place of the one before. */
export async function putClockMark(tx: Writer, mark: ClockMark): Promise<void> {
  await tx.run(
    `INSERT INTO relay_clock (slot, seen_at, paused_until) VALUES (1, ?, ?)
      ON CONFLICT (slot) DO UPDATE
        SET seen_at = excluded.seen_at, paused_until = excluded.paused_until`,
    mark.seenAt,
    mark.pausedUntil ?? null,
  );
}
