/** The packages as `npm run build` makes them, put together as an installation would. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { ownCheckout } from './measured-process.ts';

/** Builds the packages of this checkout. */
export function build(): void {
  execFileSync(process.execPath, [join(ownCheckout, 'scripts/build.ts')], { stdio: 'ignore' });
}

/**
 * Installs the built packages in a folder.
 *
 * @returns path of the command `posthouse`
 * @throws Error if they are not built
 */
export function installBuilt(folder: string): string {
  const packages = join(ownCheckout, 'packages');
  const modules = join(ownCheckout, 'node_modules');
  const target = join(folder, 'node_modules');
  mkdirSync(join(target, '@posthouse'), { recursive: true });
  for (const name of readdirSync(modules)) {
    if (name === '@posthouse' || name.startsWith('.')) continue;
    symlinkSync(join(modules, name), join(target, name));
  }
  for (const name of readdirSync(packages)) {
    // The messenger is no package of its own: the relay's has it.
    if (manifestOf(join(packages, name)).private === true) continue;
    const dist = join(packages, name, 'dist');
    if (!existsSync(dist)) throw new Error(`@posthouse/${name} is not built: npm run build`);
    cpSync(dist, join(target, '@posthouse', name), { recursive: true });
  }
  const relay = join(target, '@posthouse/relay');
  return join(relay, manifestOf(relay).bin?.posthouse ?? '');
}

interface Manifest {
  readonly private?: boolean;
  readonly bin?: { readonly posthouse: string };
}

function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
}
