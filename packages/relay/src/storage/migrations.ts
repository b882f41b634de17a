import { createHash } from 'node:crypto';
import type { Migration, Storage } from './types.ts';

/**
 * Brings the schema up to this code: applies, in the order of their numbers, the migrations that
 * the database does not have yet.
 *
 * @returns the numbers applied now
 * @throws Error when an applied migration is no longer the one in the code, or when the database
 *   has one the code does not know, which means that a newer relay wrote it
 */
export async function migrate(
  storage: Storage,
  migrations: readonly Migration[],
  now: number,
): Promise<number[]> {
  const ordered = [...migrations].sort((a, b) => a.id - b.id);
  checkDistinct(ordered);
  return storage.write('relay', async (tx) => {
    await tx.run(`CREATE TABLE IF NOT EXISTS schema_migrations (
      id BIGINT PRIMARY KEY,
      name TEXT NOT NULL,
      digest TEXT NOT NULL,
      applied_at BIGINT NOT NULL
    )`);
    const applied = await tx.all<{ id: number; name: string; digest: string }>(
      'SELECT id, name, digest FROM schema_migrations ORDER BY id',
    );
    checkApplied(ordered, applied);
    const known = new Set(applied.map(({ id }) => id));
    const missing = ordered.filter(({ id }) => !known.has(id));
    for (const migration of missing) {
      for (const statement of migration.statements) await tx.run(statement);
      await tx.run(
        'INSERT INTO schema_migrations (id, name, digest, applied_at) VALUES (?, ?, ?, ?)',
        migration.id,
        migration.name,
        migrationDigest(migration),
        now,
      );
    }
    return missing.map(({ id }) => id);
  });
}

function checkDistinct(ordered: readonly Migration[]): void {
  for (const [index, { id, name }] of ordered.entries()) {
    const next = ordered[index + 1];
    if (next?.id === id) throw new Error(`migration ${id} exists twice: ${name}, ${next.name}`);
  }
}

function checkApplied(
  migrations: readonly Migration[],
  applied: readonly { id: number; name: string; digest: string }[],
): void {
  const byId = new Map(migrations.map((migration) => [migration.id, migration]));
  for (const { id, name, digest } of applied) {
    const migration = byId.get(id);
    if (migration === undefined) {
      throw new Error(`the database is newer than this relay: it has migration ${id} (${name})`);
    }
    if (migrationDigest(migration) !== digest) {
      throw new Error(`migration ${id} (${name}) was changed after it was applied`);
    }
  }
}

/** What identifies a migration: its name and statements, white space aside. */
function migrationDigest({ name, statements }: Migration): string {
  const text = [name, ...statements.map((sql) => sql.replace(/\s+/g, ' ').trim())].join('\n');
  return createHash('sha256').update(text).digest('base64url');
}
