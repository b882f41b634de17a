/** Whether this version can use the schema of a backup. */
import type { Migration } from '../storage/types.ts';
import type { Manifest } from './manifest.ts';

/** Returns the number of a migration that this version does not know, if the backup has one. */
export function unknownMigration(
  { schema }: Pick<Manifest, 'schema'>,
  migrations: readonly Migration[],
): number | undefined {
  const known = new Set(migrations.map(({ id }) => id));
  return schema.find((id) => !known.has(id));
}
