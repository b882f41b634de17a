/**
 * Compares the documentation with the tree:
 *
 * - `docs/architecture.md` lists each entry of a package's `src`, and nothing that is not there;
 * - every file that `docs/walks.md` names exists and contains the function named next to it;
 * - every path of the repository that another page names exists;
 * - the README of a folder that has a table of files lists each file, and nothing that is not there.
 *
 * @example
 * npx node scripts/check-docs.ts
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

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
    const faults = checkPaths(page, root);
    if (name === 'docs/architecture.md') faults.push(...checkTrees(page, root));
    if (name === 'docs/walks.md') faults.push(...checkWalks(page, root));
    return faults.map((fault) => `${name}: ${fault}`);
  });
  return [...faults, ...tables];
}

if (import.meta.main) {
  const faults = checkDocs(dirname(import.meta.dirname));
  for (const fault of faults) process.stdout.write(`${fault}\n`);
  if (faults.length > 0) process.exitCode = 1;
}
