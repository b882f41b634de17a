import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

const programs = new URL('../support/postgres-programs.ts', import.meta.url).href;

test('a process that has loaded the programs of PostgreSQL keeps its exit code', () => {
  const script = `
    const { postgresPrograms } = await import('${programs}');
    using loaded = await postgresPrograms();
    process.exitCode = loaded.Server.name === 'EmbeddedPostgres' ? 3 : 4;`;
  const { status } = spawnSync(process.execPath, ['--input-type=module-typescript', '-e', script]);
  expect(status).toBe(3);
});
