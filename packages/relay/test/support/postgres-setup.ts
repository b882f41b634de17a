/** One PostgreSQL server for all tests of a run; each makes databases of its own there. */
import type { TestProject } from 'vitest/node';
import { TestPostgres } from './postgres.ts';

export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const server = await TestPostgres.start({ durable: false });
  project.provide('postgres', server.url('postgres'));
  return () => server[Symbol.asyncDispose]();
}
