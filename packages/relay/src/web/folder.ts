import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Where the messenger is: built in a checkout, or in the installed package. */
const places = ['../../../web/dist', '../messenger', '../../messenger'];

/** Returns the folder of the built messenger; `undefined` if it was not built. */
export function messengerFolder(): string | undefined {
  return places
    .map((place) => join(import.meta.dirname, place))
    .find((folder) => existsSync(join(folder, 'files.json')));
}
