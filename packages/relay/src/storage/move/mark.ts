/** What `posthouse move` writes into a database, so that no relay ever has two. */
import type { Migration, Reader, Row, Storage, Writer } from '../types.ts';

/**
 * Where a database stands in a move; one that never was in a move has none.
 * - `moving`: it is being copied to another one, and still is the relay's own;
 * - `moved`: it was copied, the other one is the relay's own;
 * - `emptying`, `arriving`: it is becoming the copy;
 * - `abandoned`: it was becoming the copy, and never will be;
 * - `arrived`: it is the copy, and in service.
 */
export type MoveState = 'moving' | 'moved' | 'emptying' | 'arriving' | 'abandoned' | 'arrived';

export interface MoveMark {
  readonly state: MoveState;
  /** The same at both ends of one move, and of no other. */
  readonly moveId: string;
  /** The other end, without its password. */
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

export function markOf({ state, move_id, other }: MarkRow): MoveMark {
  return { state, moveId: move_id, other };
}

/** Throws where {@link moveMigration} was not applied. */
export async function readMark(tx: Reader): Promise<MoveMark | undefined> {
  const row = await tx.get<MarkRow>(markSql);
  return row && markOf(row);
}

/** As {@link readMark}, of a database of any age. */
export async function findMark(storage: Storage): Promise<MoveMark | undefined> {
  return await storage.read(async (tx) => {
    const columns = await tx.all<{ table_name: string }>(storage.catalogueSql);
    return columns.some((column) => column.table_name === moveTable) ? readMark(tx) : undefined;
  });
}

/**
 * Holds a database to the mark it had before.
 * @throws Error where it was changed: something else used the database meanwhile
 */
export async function expectMark(tx: Reader, expected: MoveMark | undefined): Promise<void> {
  const found = await readMark(tx);
  const isSame = found?.state === expected?.state && found?.moveId === expected?.moveId;
  if (!isSame) throw new Error('its mark was changed by another command meanwhile');
}

/** Puts `next` in the place of `expected`, or throws as {@link expectMark} does. */
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

/** Why no relay may run on a database with this mark, and what to do; `undefined` where it may. */
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
 * Refuses a database that a move has a hand on, in the transaction that changes something of it.
 * @throws Error that says what to do
 */
export async function requireInService(tx: Reader): Promise<void> {
  const refusal = markRefusal(await readMark(tx));
  if (refusal !== undefined) throw new Error(refusal);
}

/**
 * Refuses a database that a move has a hand on. Comes before anything is written to it.
 * @throws Error that says what to do
 */
export async function checkInService(storage: Storage): Promise<void> {
  const refusal = markRefusal(await findMark(storage));
  if (refusal !== undefined) throw new Error(refusal);
}
