import { createHash } from 'node:crypto';
import type { Migration, Reader, Row, Storage } from './types.ts';

export const migrationsTable = 'schema_migrations';

/** Creates the table of applied migrations. */
export const migrationsTableSql = `CREATE TABLE IF NOT EXISTS ${migrationsTable} (
      id BIGINT PRIMARY KEY,
      name TEXT NOT NULL,
      digest TEXT NOT NULL,
      applied_at BIGINT NOT NULL
    )`;

/**
 * Applies the migrations that the database does not have yet, in the order of their numbers.
 *
 * @returns the numbers applied now
 * @throws Error if an applied migration differs from the one in the code, or if the database has
 *   a migration that the code does not know: a newer relay has used it
 */
export async function migrate(
  storage: Storage,
  migrations: readonly Migration[],
  now: number,
): Promise<number[]> {
  const ordered = [...migrations].sort((a, b) => a.id - b.id);
  checkDistinct(ordered);
  return storage.define(async (tx) => {
    await tx.run(migrationsTableSql);
    const applied = await readApplied(tx);
    checkApplied(ordered, applied);
    const known = new Set(applied.map(({ id }) => id));
    const missing = ordered.filter(({ id }) => !known.has(id));
    for (const migration of missing) {
      for (const statement of migration.statements) await tx.run(statement);
      await tx.run(
        `INSERT INTO ${migrationsTable} (id, name, digest, applied_at) VALUES (?, ?, ?, ?)`,
        migration.id,
        migration.name,
        migrationDigest(migration),
        now,
      );
    }
    return missing.map(({ id }) => id);
  });
}

/**
 * Returns the migrations that a database does not have yet; changes nothing.
 * @throws Error as {@link migrate} does, and if the database has no table of migrations
 */
export async function pendingMigrations(
  storage: Storage,
  migrations: readonly Migration[],
): Promise<Migration[]> {
  const applied = await storage.read((tx) => readApplied(tx));
  checkApplied(migrations, applied);
  const known = new Set(applied.map(({ id }) => id));
  return migrations.filter(({ id }) => !known.has(id));
}

/** A row of the table of applied migrations. */
export interface AppliedMigration extends Row {
  id: number;
  name: string;
  digest: string;
  applied_at: number;
}

/** Returns the applied migrations, by number. */
export async function readApplied(tx: Reader): Promise<AppliedMigration[]> {
  return await tx.all<AppliedMigration>(
    `SELECT id, name, digest, applied_at FROM ${migrationsTable} ORDER BY id`,
  );
}

function checkDistinct(ordered: readonly Migration[]): void {
  for (const [index, { id, name }] of ordered.entries()) {
    const next = ordered[index + 1];
    if (next?.id === id) throw new Error(`migration ${id} exists twice: ${name}, ${next.name}`);
  }
}

function checkApplied(
  migrations: readonly Migration[],
  applied: readonly AppliedMigration[],
): void {
  const byId = new Map(migrations.map((migration) => [migration.id, migration]));
  for (const { id, name, digest } of applied) {
    const migration = byId.get(id);
    if (migration === undefined) {
      throw new Error(
        `the database is newer than this relay: it has migration ${id} (${name}). ` +
          'Run the version of the relay that made it, or a later one',
      );
    }
    if (migrationDigest(migration) !== digest) {
      throw new Error(`migration ${id} (${name}) was changed after it was applied`);
    }
  }
}

/** Digest of a migration's name and statements, ignoring white space. */
function migrationDigest({ name, statements }: Migration): string {
  const text = [name, ...statements.map((sql) => sql.replace(/\s+/g, ' ').trim())].join('\n');
  return createHash('sha256').update(text).digest('base64url');
}
