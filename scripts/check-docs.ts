/**
 * Compares the documentation with the tree:
 *
 * - `docs/architecture.md` lists each entry of a package's `src`, and nothing that is not there;
 * - every file that `docs/walks.md` names exists and contains the function named next to it;
 * - every path of the repository that another page names exists;
 * - the README of a folder that has a table of files lists each file, and nothing that is not there;
 * - a link to a test, `[title](folder/file.test.ts)`, names a file that has a test of that title, and each
 *   row of a table with a column `Test` has such a link;
 * - `docs/lying-relay.md` has every reason for which a client calls an answer misbehaviour;
 * - verbs and flags of each command line of `posthouse` or `courier` exist (`command-lines.ts`).
 *
 * @example
 * npx node scripts/check-docs.ts
 */
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { checkCommandLines } from './command-lines.ts';

/** Finds what the section of a package leaves out, and what it lists that is not there. */
export function checkTrees(page: string, root: string): string[] {
  return page.split(/^### /m).flatMap((section) => {
    const [name = ''] = section.split('\n', 1);
    const listed = [...section.matchAll(/^(src\/\S+)/gm)].map(([path]) => path as string);
    if (listed.length === 0) return [];
    const folder = join(root, 'packages', name);
    const missing = listed.filter((path) => !existsSync(join(folder, path)));
    const entries = readdirSync(join(folder, 'src')).filter((entry) => !entry.startsWith('.'));
    const unlisted = entries.filter(
      (entry) => !listed.some((path) => path.replace(/\/$/, '') === `src/${entry}`),
    );
    return [
      ...missing.map((path) => `### ${name} lists ${path}, which does not exist`),
      ...unlisted.map((entry) => `### ${name} does not list src/${entry}`),
    ];
  });
}

/** Finds steps of walks whose file does not exist or does not contain the function. */
export function checkWalks(page: string, root: string): string[] {
  const steps = [...page.matchAll(/^\d+\. `(packages\/[^`]+)` `([^`]+)`/gm)];
  if (steps.length === 0) return ['no step of the form: 1. `packages/…` `function`'];
  return steps.flatMap(([, path = '', name = '']) => {
    if (!existsSync(join(root, path))) return [`${path} does not exist`];
    const [last = ''] = name.split('.').slice(-1);
    return readFileSync(join(root, path), 'utf8').includes(last)
      ? []
      : [`${path} does not contain ${last}`];
  });
}

/** Finds paths of this repository in a page that do not exist. */
export function checkPaths(page: string, root: string): string[] {
  const named = page.matchAll(/(?<![\w./-])((?:packages|docs|scripts|bench)\/[\w./-]*[\w/])/g);
  const paths = new Set([...named].map(([, path = '']) => path));
  return [...paths]
    .filter((path) => !existsSync(join(root, path)) && !path.includes('/dist'))
    .map((path) => `${path} does not exist`);
}

/** Finds what the table of files in a folder's README leaves out, or lists without it being there. */
export function checkFileTable(page: string, folder: string): string[] {
  const listed = [...page.matchAll(/^\| `([\w./-]+\.ts)` +\|/gm)].map(([, file = '']) => file);
  if (listed.length === 0) return [];
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !/^(relay-)?methods\//.test(file) && file !== 'index.ts',
  );
  return [
    ...listed.filter((file) => !files.includes(file)).map((file) => `${file} does not exist`),
    ...files.filter((file) => !listed.includes(file)).map((file) => `${file} is not listed`),
  ];
}

/** Finds links to tests that do not exist, and rows of tables of tests without one. */
export function checkTestLinks(page: string, folder: string): string[] {
  const links = [...page.matchAll(/\[([^\]]+)\]\(([^)\s]+\.test\.ts)\)/g)];
  const faults = links.flatMap(([, title = '', path = '']) => {
    const file = join(folder, path);
    if (!existsSync(file)) return [`${path} does not exist`];
    const isTitle = ["'", '`', '"'].some((quote) =>
      readFileSync(file, 'utf8').includes(`${quote}${title}${quote}`),
    );
    return isTitle ? [] : [`${path} has no test '${title}'`];
  });
  return [...faults, ...rowsWithoutTest(page)];
}

function rowsWithoutTest(page: string): string[] {
  let isTable = false;
  return page.split('\n').flatMap((line) => {
    const cells = line.split('|').map((cell) => cell.trim());
    if (!line.startsWith('|')) isTable = false;
    else if (cells.includes('Test')) isTable = true;
    else if (isTable && !/^[|\s-]+$/.test(line) && !/\.test\.ts\)/.test(line)) {
      return [`the row '${cells[1]}' has no test`];
    }
    return [];
  });
}

/** Finds reasons of misbehaviour that the table of lies does not have. */
export function checkReasons(page: string, errors: string): string[] {
  const [, union = ''] = /export type MisbehaviourReason =([^;]*);/.exec(errors) ?? [];
  const reasons = [...union.matchAll(/'([a-z_]+)'/g)].map(([, reason = '']) => reason);
  if (reasons.length === 0) return ['no reasons found in MisbehaviourReason'];
  return reasons
    .filter((reason) => !page.includes(`\`${reason}\``))
    .map((reason) => `no lie leads to ${reason}`);
}

/** Pages whose command lines are checked: all but the log of changes, which names former ones. */
function pagesWithCommands(root: string): string[] {
  const patterns = [
    '*.md',
    'docs/*.md',
    'docs/decisions/*.md',
    'packages/*/README.md',
    'deploy/*.md',
  ];
  return globSync(patterns, { cwd: root }).filter((page) => page !== 'CHANGELOG.md');
}

/** Checks every page; returns one sentence for each fault, with the page's name. */
export function checkDocs(root: string): string[] {
  const pages = [
    ...readdirSync(root).filter((name) => name.endsWith('.md') && name !== 'CHANGELOG.md'),
    ...readdirSync(join(root, 'docs'))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `docs/${name}`),
  ];
  const modules = join(root, 'packages/relay/src');
  const tables = readdirSync(modules)
    .filter((name) => existsSync(join(modules, name, 'README.md')))
    .flatMap((name) => {
      const page = readFileSync(join(modules, name, 'README.md'), 'utf8');
      return checkFileTable(page, join(modules, name)).map(
        (fault) => `packages/relay/src/${name}/README.md: ${fault}`,
      );
    });
  const faults = pages.flatMap((name) => {
    const page = readFileSync(join(root, name), 'utf8');
    const faults = [...checkPaths(page, root), ...checkTestLinks(page, join(root, dirname(name)))];
    if (name === 'docs/lying-relay.md') {
      const errors = join(root, 'packages/client/src/errors.ts');
      faults.push(...checkReasons(page, readFileSync(errors, 'utf8')));
    }
    if (name === 'docs/architecture.md') faults.push(...checkTrees(page, root));
    if (name === 'docs/walks.md') faults.push(...checkWalks(page, root));
    return faults.map((fault) => `${name}: ${fault}`);
  });
  return [...faults, ...tables];
}

if (import.meta.main) {
  const root = dirname(import.meta.dirname);
  const faults = [...checkDocs(root), ...(await checkCommandLines(root, pagesWithCommands(root)))];
  for (const fault of faults) process.stdout.write(`${fault}\n`);
  if (faults.length > 0) process.exitCode = 1;
}
