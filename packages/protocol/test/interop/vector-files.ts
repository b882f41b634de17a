import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The folder of the published vectors, or `undefined`: they are no part of this repository. */
const folder = process.env.POSTHOUSE_INTEROP_VECTORS;

/** Names of all vector files without `.json`, or `undefined` where no folder is given. */
export function vectorNames(): string[] | undefined {
  if (folder === undefined || folder === '') return undefined;
  const names = readdirSync(folder).filter((file) => file.endsWith('.json'));
  return names.map((file) => file.slice(0, -'.json'.length)).sort();
}

/** The parsed file, or `undefined` where no folder is given or it has no such file. */
export function readVectorFile(name: string): unknown {
  if (folder === undefined || folder === '') return undefined;
  const path = join(folder, `${name}.json`);
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined;
}

/** Returns whether a test file is in this folder; `coverage.test.ts` asks for `<name>.test.ts`. */
export function hasTestFile(name: string): boolean {
  return existsSync(join(import.meta.dirname, `${name}.test.ts`));
}
