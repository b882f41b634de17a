/** The relay's two private keys: files in its data folder that only its own user may read. */
import { open, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeBase64url, encodeBase64url } from '@posthouse/protocol';
import type { Random } from '@posthouse/protocol/crypto';
import { makeFolder } from '../make-folder.ts';

export interface RelayKeys {
  /** P-256 private key, 32 bytes: the relay's Neo account, from which its relay ID comes. */
  readonly relay: Uint8Array;
  /** Ed25519 seed, 32 bytes: the libp2p identity its descriptor names. */
  readonly peer: Uint8Array;
}

const files = { relay: 'relay.key', peer: 'peer.key' } as const;

/** The names of the key files. */
export const keyFiles: readonly string[] = Object.values(files);

/** Returns the folder of the keys in a data folder. */
export function keyFolder(dataFolder: string): string {
  return join(dataFolder, 'keys');
}

/**
 * Creates missing keys; never changes existing ones.
 * @returns whether any was made
 */
export async function createKeys(dataFolder: string, random: Random): Promise<boolean> {
  const folder = keyFolder(dataFolder);
  makeFolder(folder);
  let made = false;
  for (const file of keyFiles) {
    made = (await createKey(join(folder, file), random)) || made;
  }
  return made;
}

async function createKey(path: string, random: Random): Promise<boolean> {
  try {
    await using file = await open(path, 'wx', 0o600);
    await file.writeFile(`${encodeBase64url(random(32))}\n`);
    await file.sync();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/**
 * Reads both keys.
 * @throws Error if a key is missing, malformed, or readable by other users
 */
export async function loadKeys(dataFolder: string): Promise<RelayKeys> {
  const folder = keyFolder(dataFolder);
  return {
    relay: await loadKey(join(folder, files.relay)),
    peer: await loadKey(join(folder, files.peer)),
  };
}

async function loadKey(path: string): Promise<Uint8Array> {
  await requirePrivate(path, 'run `posthouse init` first');
  const key = decodeBase64url((await readFile(path, 'utf8')).trim());
  if (key?.length !== 32) throw new Error(`${path}: expected 32 bytes in base64url`);
  return key;
}

/**
 * Checks that only its own user can read a private file, as SSH does.
 * @param hint what to do if the file cannot be read
 * @throws Error
 */
export async function requirePrivate(path: string, hint: string): Promise<void> {
  let mode: number;
  try {
    ({ mode } = await stat(path));
  } catch (error) {
    throw new Error(`${path}: cannot be read, ${hint}`, { cause: error });
  }
  if ((mode & 0o077) !== 0) {
    const found = (mode & 0o777).toString(8).padStart(4, '0');
    throw new Error(
      `${path}: expected mode 0600, found ${found}; others may have read the key: replace it if so, and run chmod 600`,
    );
  }
}
