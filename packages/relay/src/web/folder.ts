import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Where the parts for browsers are: built in a checkout, or in the installed package. */
const places = {
  messenger: ['../../../web/dist', '../messenger', '../../messenger'],
  adminPage: ['../../../web/dist-admin', '../admin-page', '../../admin-page'],
} as const;

/** Returns the folder of a built part; `undefined` if it was not built. */
export function builtFolder(part: keyof typeof places): string | undefined {
  return places[part]
    .map((place) => join(import.meta.dirname, place))
    .find((folder) => existsSync(join(folder, 'files.json')));
}
