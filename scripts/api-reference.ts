/**
 * Makes the API reference of the client and the protocol from their sources, as HTML in `dist/api`.
 * A warning, such as a link that leads nowhere, is an error. TypeDoc does not run on TypeScript 7 yet:
 * it comes with `.ci/reference`, which has a lock file of its own.
 *
 * @example
 * npm run docs:api
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const tools = join(root, '.ci/reference');
const out = join(root, 'dist/api');

/** Returns the source files of what a package exports. */
function entriesOf(name: string): string[] {
  const folder = join(root, 'packages', name);
  const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    exports: Readonly<Record<string, string>>;
  };
  return Object.values(exports).map((path) => join(folder, path));
}

function run(command: string, args: readonly string[], folder = root): void {
  execFileSync(command, args, { cwd: folder, stdio: ['ignore', 'inherit', 'inherit'] });
}

const typedoc = join(tools, 'node_modules/typedoc/bin/typedoc');
if (!existsSync(typedoc)) run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], tools);
run(process.execPath, [
  typedoc,
  ...['--tsconfig', join(root, 'tsconfig.json'), '--out', out, '--name', 'Posthouse'],
  // The types are checked by TypeScript 7.
  ...['--skipErrorChecking', '--excludeInternal', '--treatWarningsAsErrors', '--disableGit'],
  ...['--sourceLinkTemplate', '{path}:{line}', '--readme', join(root, 'packages/client/README.md')],
  ...[...entriesOf('client'), ...entriesOf('protocol')].flatMap((path) => ['--entryPoints', path]),
]);
