/** Decides from the content and marks of two databases what a move may do. */
import { identityTable } from '../identity.ts';
import { migrationsTable } from '../migrations.ts';
import { type MoveDatabase, MoveError, naming } from './databases.ts';
import { type MoveMark, markRefusal, moveTable, readMark } from './mark.ts';
import { readTables } from './rows.ts';

/** A database's state before a move writes to it. */
export interface DatabaseState {
  readonly name: string;
  readonly mark: MoveMark | undefined;
  /** Network, service word and relay ID; empty if no relay was started on it. */
  readonly identity: ReadonlyMap<string, string>;
  /** Whether it has only a relay's schema and identity. */
  readonly isEmpty: boolean;
}

/** Tables about the database itself; all others hold the relay's state. */
const ownTables: readonly string[] = [migrationsTable, identityTable, moveTable];

/**
 * Reads the state of a database.
 * @throws MoveError if it has tables that are not a relay's
 */
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

/** The marks with which rows may be copied; `undefined` if the move is complete already. */
export type Plan = { readonly source: MoveMark; readonly target: MoveMark } | undefined;

/**
 * Decides how to begin or continue a move; a new move gets `moveId`.
 *
 * The order of marks is: source `moving`, target `emptying` or `arriving`, source `moved`, target
 * `arrived`. If the move is interrupted at any point, at most one of the two lets a relay run, and
 * the next run continues if both have the same move ID.
 *
 * @throws MoveError that says what to do, if nothing may be copied
 */
export function plan(
  source: DatabaseState,
  target: DatabaseState,
  { moveId, replace }: { readonly moveId: string; readonly replace: boolean },
): Plan {
  const { mark } = source;
  const targetMark = target.mark;
  if (mark !== undefined && mark.moveId === targetMark?.moveId) {
    const isUnderWay = targetMark.state === 'arriving' || targetMark.state === 'emptying';
    const isSource = mark.state === 'moving' || mark.state === 'moved';
    if (isSource && isUnderWay) return { source: mark, target: targetMark };
    if (mark.state === 'moved' && targetMark.state === 'arrived') return undefined;
  }
  const isRestart = mark?.state === 'moving' && mark.other === target.name;
  const refusal = isRestart ? undefined : markRefusal(mark);
  if (refusal !== undefined) refuse(source, refusal);
  // A new ID: a copy that an earlier move began elsewhere can no longer be completed.
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
    refuse(target, `belongs to ${name} ${value}, the source to ${source.identity.get(name)}`);
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
        `holds the old copy of the relay, which was moved to ${target.mark.other}: ` +
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
