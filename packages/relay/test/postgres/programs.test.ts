import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

const programs = new URL('../support/postgres-programs.ts', import.meta.url).href;

test.each([0, 3])('a process that has loaded the programs of PostgreSQL ends with %s', (code) => {
  const script = `
    const { postgresPrograms } = await import('${programs}');
    using loaded = await postgresPrograms();
    process.exitCode = loaded.Server.name === 'EmbeddedPostgres' ? ${code} : 4;`;
  const { status, stderr } = spawnSync(
    process.execPath,
    ['--input-type=module-typescript', '-e', script],
    { encoding: 'utf8' },
  );
  expect({ status, stderr }).toEqual({ status: code, stderr: '' });
});
