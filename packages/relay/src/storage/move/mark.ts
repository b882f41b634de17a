/** The mark that `posthouse move` stores in a database, so that a relay never runs on two. */
import type { Migration, Reader, Row, Storage, Writer } from '../types.ts';

/**
 * A database's state in a move; a database that never was in a move has none.
 * - `moving`: the source; it is being copied and is still the relay's database;
 * - `moved`: the source; it was copied, and the target is the relay's database;
 * - `emptying`, `arriving`: the target; the copy is not complete;
 * - `abandoned`: the target; the move was given up;
 * - `arrived`: the target; the copy is complete and in service.
 */
export type MoveState = 'moving' | 'moved' | 'emptying' | 'arriving' | 'abandoned' | 'arrived';

export interface MoveMark {
  readonly state: MoveState;
  /** The same in both databases of one move; unique per move. */
  readonly moveId: string;
  /** Name of the other database, without password. */
  readonly other: string;
}

export const moveTable = 'relay_move';

export const moveMigration: Migration = {
  id: 2,
  name: 'mark of a move',
  statements: [
    `CREATE TABLE ${moveTable} (
      slot BIGINT NOT NULL PRIMARY KEY CHECK (slot = 1),
      state TEXT NOT NULL CHECK
        (state IN ('moving', 'moved', 'emptying', 'arriving', 'abandoned', 'arrived')),
      move_id TEXT NOT NULL,
      other TEXT NOT NULL
    )`,
  ],
};

export const markSql = `SELECT state, move_id, other FROM ${moveTable}`;

export interface MarkRow extends Row {
  state: MoveState;
  move_id: string;
  other: string;
}

/** Converts a row to a mark. */
export function markOf({ state, move_id, other }: MarkRow): MoveMark {
  return { state, moveId: move_id, other };
}

/** Returns the mark, if any. Throws if {@link moveMigration} was not applied. */
export async function readMark(tx: Reader): Promise<MoveMark | undefined> {
  const row = await tx.get<MarkRow>(markSql);
  return row && markOf(row);
}

/** Like {@link readMark}, for a database of any schema version. */
export async function findMark(storage: Storage): Promise<MoveMark | undefined> {
  return await storage.read(async (tx) => {
    const columns = await tx.all<{ table_name: string }>(storage.catalogueSql);
    return columns.some((column) => column.table_name === moveTable) ? readMark(tx) : undefined;
  });
}

/** The mark of a database was changed by another command: what to do depends on that. */
export class MarkChanged extends Error {}

/**
 * Checks that a database still has the expected mark.
 * @throws MarkChanged
 */
export async function expectMark(tx: Reader, expected: MoveMark | undefined): Promise<void> {
  const found = await readMark(tx);
  const isSame = found?.state === expected?.state && found?.moveId === expected?.moveId;
  if (!isSame) throw new MarkChanged('its mark was changed by another command meanwhile');
}

/** Replaces the mark `expected` by `next`; throws as {@link expectMark} does. */
export async function changeMark(
  tx: Writer,
  expected: MoveMark | undefined,
  next: MoveMark | undefined,
): Promise<void> {
  await expectMark(tx, expected);
  await tx.run(`DELETE FROM ${moveTable}`);
  if (next === undefined) return;
  await tx.run(
    `INSERT INTO ${moveTable} (slot, state, move_id, other) VALUES (1, ?, ?, ?)`,
    next.state,
    next.moveId,
    next.other,
  );
}

/** Returns why no relay may run on a database with this mark, and what to do; `undefined` if one may. */
export function markRefusal(mark: MoveMark | undefined): string | undefined {
  switch (mark?.state) {
    case undefined:
    case 'arrived':
      return undefined;
    case 'moving':
      return (
        `the database is being moved to ${mark.other}: run the same \`posthouse move\` again to ` +
        'go on, or with --abandon to give the move up'
      );
    case 'moved':
      return (
        `the database was moved to ${mark.other}: set \`storage\` to that, or move it back with ` +
        '`posthouse move --replace`'
      );
    case 'emptying':
    case 'arriving':
      return (
        `the database is the unfinished copy of ${mark.other}: run the same \`posthouse move\` ` +
        'again to finish it'
      );
    case 'abandoned':
      return `the database is the unfinished copy of ${mark.other}, which was given up: remove it`;
  }
}

/**
 * Refuses a database that is part of an unfinished or completed move, inside a transaction.
 * @throws Error that says what to do
 */
export async function requireInService(tx: Reader): Promise<void> {
  const refusal = markRefusal(await readMark(tx));
  if (refusal !== undefined) throw new Error(refusal);
}

/**
 * Refuses a database that is part of an unfinished or completed move; call it before any write.
 * @throws Error that says what to do
 */
export async function checkInService(storage: Storage): Promise<void> {
  const refusal = markRefusal(await findMark(storage));
  if (refusal !== undefined) throw new Error(refusal);
}
