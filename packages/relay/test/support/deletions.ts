import type { Writer } from '../../src/storage/types.ts';
import type { InProcessRelay } from './in-process-relay.ts';

/** Returns the most rows that a statement of a write deletes, and those that read what they delete. */
export async function deletionsOf(
  { context, faults }: Pick<InProcessRelay, 'context' | 'faults'>,
  work: (tx: Writer) => Promise<unknown>,
): Promise<{ readonly most: number; readonly reading: readonly string[] }> {
  const statements: string[] = [];
  faults.beforeStatement = (sql) => void statements.push(sql);
  await context.storage.write('group:any', work);
  delete faults.beforeStatement;
  const deletions = statements.filter((sql) => /^\s*DELETE/.test(sql));
  const rows = deletions.map((sql) => /\bIN \(([?, ]*)\)/.exec(sql)?.[1]?.split(',').length ?? 0);
  return { most: Math.max(...rows), reading: deletions.filter((sql) => /RETURNING/.test(sql)) };
}
