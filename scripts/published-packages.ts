import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const packages = join(import.meta.dirname, '../packages');

/** Names of the folders in `packages/` that are published; the messenger is in the relay's package. */
export const publishedPackages: readonly string[] = readdirSync(packages).filter((name) => {
  const manifest = JSON.parse(readFileSync(join(packages, name, 'package.json'), 'utf8'));
  return (manifest as { private?: boolean }).private !== true;
});
