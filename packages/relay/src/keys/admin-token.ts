/** The token of the admin interface: a private file of 32 random bytes, as hexadecimal digits. */
import { open, readFile } from 'node:fs/promises';
import type { Random } from '@posthouse/protocol/crypto';
import { requirePrivate } from './keys.ts';

/** Characters of a token. */
const pattern = /^[0-9a-f]{64}$/;

/**
 * Creates the file of a token; an existing one is left as it is.
 * @returns whether it was made
 */
export async function createToken(path: string, random: Random): Promise<boolean> {
  try {
    await using file = await open(path, 'wx', 0o600);
    await file.writeFile(`${Buffer.from(random(32)).toString('hex')}\n`);
    await file.sync();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/**
 * Reads a token.
 * @throws Error if the file is missing, malformed, or readable by other users
 */
export async function loadToken(path: string): Promise<string> {
  await requirePrivate(path, 'make it with `posthouse init`');
  const token = (await readFile(path, 'utf8')).trim();
  if (pattern.test(token)) return token;
  throw new Error(
    `${path}: expected 32 bytes as 64 hexadecimal digits in lower case: remove it, and run \`posthouse init\``,
  );
}
