/**
 * One PostgreSQL server for all tests of a run; each has databases of its own there, most of them
 * copies of one with the relay's schema.
 */
import type { TestProject } from 'vitest/node';
import { relayMigrations } from '../../src/modules.ts';
import { migrate } from '../../src/storage/migrations.ts';
import { openPostgres } from '../../src/storage/postgres/storage.ts';
import { createDatabase, TestPostgres } from './postgres.ts';

const template = 'template_with_schema';

export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const server = await TestPostgres.start({ durable: false });
  const url = await createDatabase(server.url('postgres'), template);
  {
    await using storage = await openPostgres({ url, connections: 1, lockMode: 'alone' });
    await migrate(storage, relayMigrations, 0);
  }
  project.provide('postgres', server.url('postgres'));
  project.provide('template', template);
  return () => server[Symbol.asyncDispose]();
}
