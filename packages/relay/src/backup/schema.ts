/** Whether this version can use the schema of a backup, and whether it is a schema that posthouse makes. */
import { migrationsTableSql } from '../storage/migrations.ts';
import { SqliteConnection } from '../storage/sqlite/connection.ts';
import type { Migration } from '../storage/types.ts';
import { keysTable, type Manifest, manifestTable } from './manifest.ts';

/** Returns the number of a migration that this version does not know, if the backup has one. */
export function unknownMigration(
  { schema }: Pick<Manifest, 'schema'>,
  migrations: readonly Migration[],
): number | undefined {
  const known = new Set(migrations.map(({ id }) => id));
  return schema.find((id) => !known.has(id));
}

/** Tables are compared by their rows; the file's own tables, by its manifest. */
const objectsSql = `SELECT type, name, sql FROM sqlite_master
  WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~' AND name NOT IN ('${keysTable}', '${manifestTable}')
  ORDER BY type, name`;

/**
 * Compares tables, indexes, triggers and views with those that the backup's migrations make: digests
 * are of rows only.
 *
 * @returns the first difference; `undefined` if there is none
 */
export function schemaDifference(
  connection: SqliteConnection,
  { schema }: Pick<Manifest, 'schema'>,
  migrations: readonly Migration[],
): string | undefined {
  const found = objectsOf(connection);
  const expected = emptyObjects(schema, migrations);
  for (const [name, sql] of found) {
    const known = expected.get(name);
    if (known === undefined) return `an unknown ${name}`;
    if (known !== sql) return `another ${name}`;
  }
  for (const name of expected.keys()) if (!found.has(name)) return `the ${name} is missing`;
  return undefined;
}

/** The objects of an empty database with these migrations. */
function emptyObjects(schema: readonly number[], migrations: readonly Migration[]) {
  const connection = new SqliteConnection(':memory:', { readOnly: false });
  try {
    connection.execute(migrationsTableSql);
    const applied = migrations.filter(({ id }) => schema.includes(id));
    for (const { statements } of applied.sort((a, b) => a.id - b.id)) {
      for (const statement of statements) connection.execute(statement);
    }
    return objectsOf(connection);
  } finally {
    connection.close();
  }
}

function objectsOf(connection: SqliteConnection): Map<string, string> {
  const rows = connection.all(objectsSql, []);
  return new Map(rows.map(({ type, name, sql }) => [`${type} ${name}`, normal(String(sql))]));
}

/** Versions of SQLite write the same object with other spaces and quotes. */
function normal(sql: string): string {
  return sql
    .replaceAll('"', '')
    .replace(/\s+/g, ' ')
    .replace(/ ?([(),]) ?/g, '$1')
    .trim();
}
