import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Where the parts for browsers are: in the installed package, or built in a checkout. */
const places = {
  messenger: ['../messenger', '../../messenger', '../../../web/dist'],
  adminPage: ['../admin-page', '../../admin-page', '../../../web/dist-admin'],
} as const;

/** Returns the folder of a built part; `undefined` if it was not built. */
export function builtFolder(part: keyof typeof places): string | undefined {
  return places[part]
    .map((place) => join(import.meta.dirname, place))
    .find((folder) => existsSync(join(folder, 'files.json')));
}
