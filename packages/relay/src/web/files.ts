import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { checkSchema, type Static, Type } from '@posthouse/protocol';

/** What `files.json` says of the messenger. */
const FileList = Type.Object({
  version: Type.String(),
  files: Type.Array(
    Type.Object({
      // Not `..`, no folder, no other name than those that the build makes.
      name: Type.String({ pattern: '^[A-Za-z0-9_-]+(?:\\.[a-z0-9]+)+$' }),
      type: Type.String(),
      bytes: Type.Integer({ minimum: 0 }),
      sha256: Type.String(),
      immutable: Type.Boolean(),
    }),
    { maxItems: 200 },
  ),
});
export type WebFileList = Static<typeof FileList>;
export type ListedFile = WebFileList['files'][number];

/** Bytes of all files in memory, compressed ones included. */
const mostBytes = 3_145_728;

/** How a browser may get a file: as it is, or compressed. */
export const encodings = ['br', 'gzip', 'identity'] as const;
export type Encoding = (typeof encodings)[number];

const extensions = { br: '.br', gzip: '.gz', identity: '' } as const;

/** A file of the messenger, in memory. */
export interface ServedFile {
  readonly type: string;
  /** Of the content: the same in each encoding but for the suffix. */
  readonly digest: string;
  /** Whether its name changes with its content. */
  readonly isImmutable: boolean;
  readonly bodies: ReadonlyMap<Encoding, Buffer>;
}

/** The list itself is served, too: what a page got can be compared with it. */
export const listName = 'files.json';

/**
 * Reads the messenger's files, and the list of them.
 *
 * @throws Error that names the file which is missing, or is not the one that was built
 */
export function readWebFiles(folder: string): ReadonlyMap<string, ServedFile> {
  const { files: list } = readWebList(folder);
  const files = new Map(list.map((file) => [file.name, readFile(folder, file)]));
  files.set(listName, listFile(folder));
  let total = 0;
  for (const { bodies } of files.values()) {
    for (const { length } of bodies.values()) total += length;
  }
  if (total > mostBytes) throw new Error(`${folder}: ${total} bytes, more than ${mostBytes}`);
  if (!files.has('index.html')) throw new Error(`${folder}: index.html is missing`);
  return files;
}

/** Computes the digest of a file, as `files.json` has it: SHA-256 in base64. */
export const digestOf = (content: Uint8Array) =>
  createHash('sha256').update(content).digest('base64');

function listFile(folder: string): ServedFile {
  const content = readFileSync(join(folder, listName));
  return {
    ...{ type: 'application/json', digest: digestOf(content), isImmutable: false },
    bodies: new Map([['identity', content]]),
  };
}

/**
 * Reads the list of a built messenger.
 *
 * @throws Error that names the file if there is none
 */
export function readWebList(folder: string): WebFileList {
  const path = join(folder, listName);
  try {
    return parseWebList(readFileSync(path, 'utf8'));
  } catch (cause) {
    throw new Error(`${path}: not the list of a built messenger`, { cause });
  }
}

/** @throws Error if the text is no list of a messenger's files */
export function parseWebList(text: string): WebFileList {
  const list: unknown = JSON.parse(text);
  checkSchema(FileList, list);
  return list;
}

/** Decodes a body. @returns nothing for what cannot be decoded, or is longer than it may be */
export function decoded(encoding: Encoding, body: Buffer, length: number): Uint8Array {
  const options = { maxOutputLength: Math.max(1, length) };
  try {
    if (encoding === 'br') return brotliDecompressSync(body, options);
    return encoding === 'gzip' ? gunzipSync(body, options) : body;
  } catch {
    return new Uint8Array();
  }
}

function readFile(folder: string, { name, type, sha256, immutable }: ListedFile): ServedFile {
  const path = join(folder, name);
  const content = readFileSync(path);
  const digest = digestOf(content);
  if (digest !== sha256) throw new Error(`${path}: not the file that was built`);
  const bodies = new Map<Encoding, Buffer>();
  for (const encoding of encodings) {
    const encoded = path + extensions[encoding];
    if (!existsSync(encoded)) continue;
    const body = readFileSync(encoded);
    if (!content.equals(decoded(encoding, body, content.length))) {
      throw new Error(`${encoded}: not the file that was built`);
    }
    bodies.set(encoding, body);
  }
  return { type, digest, isImmutable: immutable, bodies };
}

/**
 * Picks the encoding of an answer by the request's `Accept-Encoding`; what a client weighs with `q=0` is
 * not used.
 *
 * @example
 * pickEncoding(file, 'gzip, deflate, br'); // 'br'
 */
export function pickEncoding({ bodies }: ServedFile, accepted = ''): Encoding {
  const taken = new Set(
    accepted
      .split(',')
      .map((part) => part.split(';', 2).map((text) => text.trim()))
      .filter(([, weight = '']) => !/^q=0(?:\.0*)?$/.test(weight))
      .map(([name]) => name),
  );
  return encodings.find((encoding) => taken.has(encoding) && bodies.has(encoding)) ?? 'identity';
}

const forever = 'public, max-age=31536000, immutable';
/** Kept, and asked for again with its digest at each use. */
const revalidated = 'no-cache';

/** Headers of a file that is answered in an encoding. */
export function fileHeaders(
  { digest, isImmutable }: ServedFile,
  encoding: Encoding,
): Readonly<Record<'cache-control' | 'etag' | 'vary', string>> & {
  readonly 'content-encoding'?: string;
} {
  return {
    'cache-control': isImmutable ? forever : revalidated,
    etag: `"${digest}${encoding === 'identity' ? '' : `-${encoding}`}"`,
    vary: 'accept-encoding',
    ...(encoding !== 'identity' && { 'content-encoding': encoding }),
  };
}
