/** The packages that `npm run build` made, installed as another project would: packed and unpacked. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const root = dirname(import.meta.dirname);

/** Makes a new folder, a project with the packages and their dependencies, and returns its path. */
export function installPackages(names: readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'posthouse-build-'));
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  mkdirSync(join(folder, 'node_modules'));
  for (const entry of readdirSync(join(root, 'node_modules'))) {
    if (entry === '@posthouse' || entry === '.bin') continue;
    symlinkSync(join(root, 'node_modules', entry), join(folder, 'node_modules', entry));
  }
  for (const name of names) install(folder, name);
  return folder;
}

/** Packs a built package and unpacks it below `node_modules` of the folder. */
function install(folder: string, name: string): void {
  const packed = execFileSync('npm', ['pack', '--json', '--pack-destination', folder], {
    cwd: join(root, 'packages', name, 'dist'),
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const target = join(folder, 'node_modules', '@posthouse', name);
  mkdirSync(target, { recursive: true });
  const [{ filename }] = JSON.parse(packed) as [{ filename: string }];
  execFileSync('tar', ['-xzf', join(folder, filename), '-C', target, '--strip-components=1']);
}
