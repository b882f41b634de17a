/** What a backup says about itself: a table of its own in the file, written last. */
import { createHash } from 'node:crypto';
import type { TableDigest } from '../storage/move/rows.ts';

/** An error about a backup that ends in what to do. */
export class BackupError extends Error {
  override readonly name = 'BackupError';
}

/** Tables of the file that are not of the relay's database. */
export const manifestTable = 'backup_manifest';
export const keysTable = 'backup_keys';

/** The version of the form of the file; an older program refuses a later one. */
const formVersion = 1;

/** What a backup holds, and of whom. */
export interface Manifest {
  readonly form: number;
  readonly relay: string;
  readonly network: string;
  readonly service: string;
  /** Unix seconds. */
  readonly created_at: number;
  /** The engine that it was made from; the file is the same for both. */
  readonly engine: 'sqlite' | 'postgres';
  /** Numbers of the applied migrations. */
  readonly schema: readonly number[];
  readonly tables: Readonly<Record<string, TableDigest>>;
  /** SHA-256 of each key file, hexadecimal, by name; empty without `--with-keys`. */
  readonly keys: Readonly<Record<string, string>>;
}

/** Returns a manifest's text with its SHA-256, as they are stored. */
export function manifestText(manifest: Omit<Manifest, 'form'>): { text: string; digest: string } {
  const text = JSON.stringify({ form: formVersion, ...manifest });
  return { text, digest: sha256(text) };
}

/**
 * Parses a stored manifest.
 * @throws BackupError if it is damaged, or of a later form
 */
export function parseManifest(text: string, digest: string): Manifest {
  if (sha256(text) !== digest) {
    throw new BackupError('its list of contents is damaged: use another backup');
  }
  const manifest = JSON.parse(text) as Manifest;
  if (manifest.form === formVersion) return manifest;
  throw new BackupError('it was made by a later version of posthouse: use that version');
}

/** SHA-256 of a text, hexadecimal. */
export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
