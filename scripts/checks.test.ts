/** The project's own checks run in `npm run check`; here, that each of them finds what it looks for. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  checkDocs,
  checkFileTable,
  checkPaths,
  checkReasons,
  checkTestLinks,
  checkTrees,
  checkWalks,
} from './check-docs.ts';
import { findUpwardImports } from './check-imports.ts';
import { checkFixed, checkLimits, writtenLimits } from './check-limits.ts';
import { findWords } from './check-words.ts';

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'posthouse-checks-'));
  for (const [path, text] of Object.entries({
    'packages/relay/src/relay.ts': 'export function start() {}\n',
    'packages/relay/src/jobs/runner.ts': '',
  })) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
});
afterEach(() => rmSync(root, { recursive: true }));

test('a listed word is found in any line, a standard term with it is not', () => {
  const text = ['a timer', '// Nobody waits.', 'behind a proxy', 'the row behind the event'];
  const uses = findWords('a.ts', text.join('\n'));
  expect(uses.map(({ line }) => line)).toEqual([2, 4]);
});

test('an import from a higher floor, the same floor or no floor is found', () => {
  const found = (file: string, path: string) =>
    findUpwardImports(file, `import { a } from '${path}';`).length;
  expect(found('groups/chain/a.ts', '../../accounts/index.ts')).toBe(0);
  expect(found('groups/chain/a.ts', '../reading/b.ts')).toBe(0);
  expect(found('accounts/a.ts', '../groups/index.ts')).toBe(1);
  expect(found('groups/a.ts', '../messages/index.ts')).toBe(1);
  expect(found('storage/a.ts', '../context.ts')).toBe(0);
  expect(found('context.ts', './jobs/a.ts')).toBe(0);
  expect(found('new-folder/a.ts', '../digest.ts')).toBe(1);
  expect(found('main.ts', '../../client/src/index.ts')).toBe(1);
  expect(findUpwardImports('jobs/a.ts', `export * from '../relay.ts';`)).toHaveLength(1);
});

test('the tree of a package lists each entry of src and no other', () => {
  const page = (lines: string) => `## Packages\n\n### relay\n\n${lines}\n`;
  expect(checkTrees(page('src/relay.ts  a\nsrc/jobs/  b'), root)).toEqual([]);
  expect(checkTrees(page('src/relay.ts  a'), root)).toEqual(['### relay does not list src/jobs']);
  expect(checkTrees(page('src/relay.ts\nsrc/jobs/\nsrc/gone/'), root)).toEqual([
    '### relay lists src/gone/, which does not exist',
  ]);
});

test('a step of a walk names a file that contains the function', () => {
  const step = (path: string, name: string) =>
    checkWalks(`1. \`packages/relay/src/${path}\` \`${name}\` does it\n`, root).length;
  expect(step('relay.ts', 'start')).toBe(0);
  expect(step('relay.ts', 'Relay.start')).toBe(0);
  expect(step('relay.ts', 'stop')).toBe(1);
  expect(step('gone.ts', 'start')).toBe(1);
  expect(checkWalks('no steps', root)).toHaveLength(1);
});

test('the table of files in a README lists each file of the folder and no other', () => {
  const folder = join(root, 'packages/relay/src/jobs');
  const row = (file: string) => `| \`${file}\` | runs |\n`;
  expect(checkFileTable('no table', folder)).toEqual([]);
  expect(checkFileTable(row('runner.ts'), folder)).toEqual([]);
  expect(checkFileTable(row('gone.ts'), folder)).toEqual([
    'gone.ts does not exist',
    'runner.ts is not listed',
  ]);
});

test('a path of the repository that a page names exists', () => {
  expect(checkPaths('see `packages/relay/src/relay.ts` and [x](packages/relay)', root)).toEqual([]);
  expect(checkPaths('see packages/relay/src/gone.ts.', root)).toHaveLength(1);
});

test('a link to a test names one that exists, and each row of a table of tests has a link', () => {
  writeFileSync(join(root, 'a.test.ts'), "test('one holds', () => {});\n");
  const row = (link: string) => `| Lie | Test |\n| --- | --- |\n| a | ${link} |\n`;
  expect(checkTestLinks(row('[one holds](a.test.ts)'), root)).toEqual([]);
  expect(checkTestLinks(row('[two holds](a.test.ts)'), root)).toEqual([
    "a.test.ts has no test 'two holds'",
  ]);
  expect(checkTestLinks(row('[one holds](gone.test.ts)'), root)).toEqual([
    'gone.test.ts does not exist',
  ]);
  expect(checkTestLinks(row('none'), root)).toEqual(["the row 'a' has no test"]);
});

test('the table of lies has each reason for which a client refuses an answer', () => {
  const errors = "export type MisbehaviourReason =\n  | 'page_order'\n  | 'page_too_long';\n";
  expect(checkReasons('`page_order` `page_too_long`', errors)).toEqual([]);
  expect(checkReasons('`page_order`', errors)).toEqual(['no lie leads to page_too_long']);
});

const repository = dirname(import.meta.dirname);
const json = (path: string) => JSON.parse(readFileSync(join(repository, path), 'utf8'));

test.each([
  ['package-lock.json', 100],
  ['.ci/packages/package-lock.json', 10],
  ['.ci/reference/package-lock.json', 10],
])('%s has the digest of each package, also of other platforms', (file, least) => {
  const { packages } = json(file) as {
    packages: Record<string, { integrity?: string; link?: boolean }>;
  };
  const external = Object.entries(packages).filter(
    ([path, { link }]) => path.includes('node_modules/') && link !== true,
  );
  expect(external.length).toBeGreaterThan(least);
  const without = external.filter(([, { integrity }]) => !/^sha512-/.test(integrity ?? ''));
  expect(without.map(([path]) => path)).toEqual([]);
});

test('every dependency has an exact version', () => {
  const folders = readdirSync(join(repository, 'packages')).map((name) => `packages/${name}/`);
  const versions = ['', ...folders].flatMap((folder) => {
    const { dependencies = {}, devDependencies = {} } = json(`${folder}package.json`);
    return Object.values({ ...devDependencies, ...dependencies } as Record<string, string>);
  });
  expect(versions.length).toBeGreaterThan(20);
  expect(versions.filter((version) => !/^\d+\.\d+\.\d+[\w.-]*$/.test(version))).toEqual([]);
});

test('the pages of this repository pass', () => {
  expect(checkDocs(repository)).toEqual([]);
});

test('a limit needs one row with the default of the code, its owner and what is above it', () => {
  const page = readFileSync(join(import.meta.dirname, '../docs/limits.md'), 'utf8');
  expect(checkLimits(page)).toEqual([]);
  const [row = ''] = /^\| `stagedStates` .*\n/m.exec(page) ?? [];
  const faults = (changed: string) => checkLimits(page.replace(row, changed));
  expect(faults('')).toEqual(['stagedStates has 0 rows']);
  expect(faults(row + row)).toEqual(['stagedStates has 2 rows']);
  expect(faults(`${row}| \`noLimit\` | 1 | count | call | it ends |\n`)).toEqual([
    'noLimit is no limit',
  ]);
  const old = row.replace('10,000', '9,999');
  expect(faults(old)).toEqual([expect.stringContaining('stagedStates is 10,000 count')]);
  expect(checkLimits(writtenLimits(page.replace(row, old)))).toEqual([]);
  expect(faults('| `stagedStates` | 10,000 | count | world | |\n')).toHaveLength(2);
});

test('a bound that is a constant of the code has one row with its value and file', () => {
  const page = readFileSync(join(import.meta.dirname, '../docs/limits.md'), 'utf8');
  expect(checkFixed(page)).toEqual([]);
  const [row = ''] = /^\| `callsPerTurn` .*\n/m.exec(page) ?? [];
  const faults = (changed: string) => checkFixed(page.replace(row, changed));
  const missing = 'no row: callsPerTurn is 64 in dispatch/call-turns.ts';
  expect(faults('')).toEqual([missing]);
  expect(faults(row.replace('64', '65'))).toEqual([
    missing,
    'not in the code: callsPerTurn 65 dispatch/call-turns.ts',
  ]);
});

test('each number of the write path of SQLite has a row', () => {
  const page = readFileSync(join(import.meta.dirname, '../docs/limits.md'), 'utf8');
  const without = page.replaceAll(/^.*`storage\/sqlite\/.*\n/gm, '');
  expect(checkFixed(without)).toEqual(
    expect.arrayContaining([
      'no row: batchMilliseconds is 20 in storage/sqlite/writer.ts',
      'no row: heldAt is 8,192 in storage/sqlite/checkpoints.ts',
    ]),
  );
});
