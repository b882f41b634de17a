/** What two databases allow a move to do, by what they hold and how they are marked. */
import { identityTable } from '../identity.ts';
import { migrationsTable } from '../migrations.ts';
import { type MoveDatabase, MoveError, naming } from './databases.ts';
import { type MoveMark, markRefusal, moveTable, readMark } from './mark.ts';
import { readTables } from './rows.ts';

/** What is known of a database before anything is written to it. */
export interface DatabaseState {
  readonly name: string;
  readonly mark: MoveMark | undefined;
  /** Network, service word and relay ID; nothing where no relay was started on it. */
  readonly identity: ReadonlyMap<string, string>;
  /** Whether it has no more than a relay's schema and facts. */
  readonly isEmpty: boolean;
}

/** Tables that say something about the database, not about what the relay stores in it. */
const ownTables: readonly string[] = [migrationsTable, identityTable, moveTable];

/** @throws MoveError where it has tables, and they are not a relay's */
export async function inspect({ name, storage }: MoveDatabase): Promise<DatabaseState> {
  return await naming({ name }, async () => {
    const names = (await readTables(storage)).map((table) => table.name);
    if (names.length > 0 && !names.includes(migrationsTable)) {
      throw new Error(`has tables that are not a relay's: ${names.slice(0, 3).join(', ')}`);
    }
    return await storage.read(async (tx) => {
      const mark = names.includes(moveTable) ? await readMark(tx) : undefined;
      const rows = names.includes(identityTable)
        ? await tx.all<{ name: string; value: string }>(`SELECT name, value FROM ${identityTable}`)
        : [];
      let isEmpty = true;
      for (const table of names) {
        if (ownTables.includes(table)) continue;
        isEmpty &&= (await tx.get(`SELECT 1 AS one FROM "${table}" LIMIT 1`)) === undefined;
      }
      const identity = new Map(rows.map((row) => [row.name, row.value]));
      return { name, mark, identity, isEmpty };
    });
  });
}

/** The marks under which rows may be copied; `undefined` where the move is complete already. */
export type Plan = { readonly source: MoveMark; readonly target: MoveMark } | undefined;

/**
 * Decides how to begin or go on, with `moveId` for a move that begins.
 *
 * The order of marks is: source `moving`, target `emptying` or `arriving`, source `moved`, target
 * `arrived`. Wherever it is cut off, at most one of the two lets a relay run, and the next run
 * finds its place by the number that both have.
 *
 * @throws MoveError that says what to do, where nothing may be copied
 */
export function plan(
  source: DatabaseState,
  target: DatabaseState,
  { moveId, replace }: { readonly moveId: string; readonly replace: boolean },
): Plan {
  const { mark } = source;
  const there = target.mark;
  if (mark !== undefined && mark.moveId === there?.moveId) {
    const isUnderWay = there.state === 'arriving' || there.state === 'emptying';
    const isSource = mark.state === 'moving' || mark.state === 'moved';
    if (isSource && isUnderWay) return { source: mark, target: there };
    if (mark.state === 'moved' && there.state === 'arrived') return undefined;
  }
  const isOnItsWay = mark?.state === 'moving' && mark.other === target.name;
  const refusal = isOnItsWay ? undefined : markRefusal(mark);
  if (refusal !== undefined) refuse(source, refusal);
  // A number of its own: what was begun under the last one at another place stays without a source.
  return {
    source: { state: 'moving', moveId, other: target.name },
    target: { state: initialTargetState(source, target, replace), moveId, other: source.name },
  };
}

function initialTargetState(
  source: DatabaseState,
  target: DatabaseState,
  replace: boolean,
): 'arriving' | 'emptying' {
  for (const [name, value] of target.identity) {
    if (source.identity.get(name) === value) continue;
    refuse(target, `is of ${name} ${value}, the source is of ${source.identity.get(name)}`);
  }
  switch (target.mark?.state) {
    case undefined:
    case 'arrived':
      if (target.isEmpty && target.mark === undefined) return 'arriving';
      return refuse(target, 'has the state of a relay already; a move needs an empty database');
    case 'moved':
      if (replace) return 'emptying';
      return refuse(
        target,
        `holds the copy that was left behind when the relay was moved to ${target.mark.other}: ` +
          'give --replace to empty it first',
      );
    case 'moving':
      return refuse(target, `is being moved to ${target.mark.other} itself`);
    case 'emptying':
    case 'arriving':
    case 'abandoned':
      return refuse(
        target,
        `holds the unfinished copy of another move, from ${target.mark.other}: remove it, and ` +
          'begin with an empty database',
      );
  }
}

function refuse({ name }: DatabaseState, why: string): never {
  throw new MoveError(name, new Error(why));
}
