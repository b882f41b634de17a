/** What a backup says about itself: a table of its own in the file, written last. */
import { createHash } from 'node:crypto';
import { checkSchema, type Static, Type } from '@posthouse/protocol';

/** An error about a backup that ends in what to do. */
export class BackupError extends Error {
  override readonly name = 'BackupError';
}

/** Tables of the file that are not of the relay's database. */
export const manifestTable = 'backup_manifest';
export const keysTable = 'backup_keys';

/** The version of the form of the file; an older program refuses a later one. */
const formVersion = 1;

/** Of texts that commands print: a manifest that was altered can have the right digest. */
const Word = Type.String({ pattern: '^[!-~]*$' });
const Digest = Type.String({ pattern: '^[0-9a-f]{64}$' });
const digestsOf = { additionalProperties: false } as const;

/** What a backup holds, and of whom. */
const Contents = Type.Object({
  form: Type.Literal(formVersion),
  relay: Word,
  network: Word,
  service: Word,
  /** Unix seconds. */
  created_at: Type.Integer({ minimum: 0, maximum: 8_640_000_000_000 }),
  /** The engine that it was made from; the file is the same for both. */
  engine: Type.Union([Type.Literal('sqlite'), Type.Literal('postgres')]),
  /** Numbers of the applied migrations. */
  schema: Type.Array(Type.Integer({ minimum: 0 })),
  tables: Type.Members(
    '^[a-z0-9_]+$',
    Type.Object({ rows: Type.Integer({ minimum: 0 }), digest: Digest }),
    digestsOf,
  ),
  /** SHA-256 of each key file, by name; empty without `--with-keys`. */
  keys: Type.Members('^[a-z.]+$', Digest, digestsOf),
});
export type Manifest = Static<typeof Contents>;

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
  const manifest = parsed(text);
  if (Number((manifest as { readonly form?: unknown } | null)?.form) > formVersion) {
    throw new BackupError('it was made by a later version of posthouse: use that version');
  }
  try {
    checkSchema(Contents, manifest);
    return manifest;
  } catch {
    throw new BackupError(
      'its list of contents is not one that posthouse makes: use another backup',
    );
  }
}

/** Returns what a text is in JSON; `undefined` if it is none. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** SHA-256 of a text, hexadecimal. */
export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
