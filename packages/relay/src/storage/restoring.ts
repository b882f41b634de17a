/** The file that keeps a relay from starting on a folder while it is restored. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** In a data folder from the beginning of a restore to its end. */
export const restoringFile = 'restoring';

/** @throws Error that says what to do, if the folder is the result of a restore that did not end */
export function requireRestored(directory: string): void {
  if (!existsSync(join(directory, restoringFile))) return;
  throw new Error(
    `${directory} was not restored to the end: run the same \`posthouse restore\` again`,
  );
}
