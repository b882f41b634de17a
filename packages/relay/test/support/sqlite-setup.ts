/** A database file with the relay's schema, for the tests of a run to copy. */
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { relayMigrations } from '../../src/modules.ts';
import { migrate } from '../../src/storage/migrations.ts';
import { openSqlite } from '../../src/storage/sqlite/storage.ts';
import { temporaryFolder } from './folder.ts';

export default async function setUp(project: TestProject): Promise<() => void> {
  const folder = temporaryFolder();
  {
    await using storage = openSqlite(folder.path);
    await migrate(storage, relayMigrations, 0);
  }
  project.provide('template', join(folder.path, 'relay.sqlite'));
  return () => folder[Symbol.dispose]();
}
