/** What `.ci/run` reads of a run of tests: nothing that failed is missing, and each is named. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import type { TestReport } from './test-report.ts';

const failing = `
  test('good', () => {});
  test('bad', () => expect(1).toBe(2));
  describe('before', () => {
    beforeAll(() => { throw new Error('its folder is missing'); });
    test('never runs', () => {});
  });
  describe('after', () => {
    afterAll(() => { throw new Error('it did not end'); });
    test('also good', () => new Promise((resolve) => {
      process.nextTick(() => { throw new Error('outside'); });
      setImmediate(resolve);
    }));
  });
`;

test('it has tests, hooks of a describe, files that do not load and errors outside tests', () => {
  const folder = mkdtempSync(join(tmpdir(), 'test-report-'));
  try {
    writeFileSync(join(folder, 'failing.test.ts'), failing);
    writeFileSync(join(folder, 'unloaded.test.ts'), `import './gone.ts';`);
    const report = join(folder, 'report.json');
    const vitest = join(import.meta.dirname, '../node_modules/vitest/vitest.mjs');
    const reporter = `--reporter=${join(import.meta.dirname, 'test-report.ts')}`;
    const { status } = spawnSync(
      process.execPath,
      [vitest, 'run', '--root', folder, '--globals', reporter],
      { env: { PATH: process.env.PATH, TEST_REPORT: report } },
    );
    expect(status).toBe(1);
    const { passed, failures } = JSON.parse(readFileSync(report, 'utf8')) as TestReport;
    expect(passed).toBe(2);
    const named = failures.map(({ name, text }) => [basename(name), text.split('\n')[0]]);
    expect(named.sort()).toEqual([
      ['failing.test.ts: after', 'Error: it did not end'],
      ['failing.test.ts: bad', 'AssertionError: expected 1 to be 2 // Object.is equality'],
      ['failing.test.ts: before', 'Error: its folder is missing'],
      ['outside a test', 'Error: outside'],
      ['unloaded.test.ts', expect.stringContaining("'./gone.ts'")],
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
