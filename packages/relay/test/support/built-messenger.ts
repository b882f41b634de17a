/** A small folder as the build of the messenger makes one. */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';

/** Its files by name. */
export const builtContents: Readonly<Record<string, readonly [type: string, content: string]>> = {
  'index.html': ['text/html; charset=utf-8', '<!doctype html><title>app</title>'],
  'main-ABCDEFGH.js': ['text/javascript; charset=utf-8', 'console.log("app");'.repeat(50)],
};

const digestOf = (content: string) => createHash('sha256').update(content).digest('base64');

interface Changes {
  readonly contents?: typeof builtContents;
  readonly version?: string;
  readonly change?: (file: Record<string, unknown>) => object;
}

/** Writes the folder: each file as it is and compressed, and their list. */
export function writeMessenger(
  path: string,
  { contents = builtContents, version = '1', change = (file) => file }: Changes = {},
): void {
  const files = Object.entries(contents).map(([name, [type, content]]) => {
    writeFileSync(join(path, name), content);
    writeFileSync(join(path, `${name}.gz`), gzipSync(content));
    writeFileSync(join(path, `${name}.br`), brotliCompressSync(content));
    const bytes = content.length;
    const immutable = name !== 'index.html';
    return change({ name, type, bytes, sha256: digestOf(content), immutable });
  });
  writeFileSync(join(path, 'files.json'), JSON.stringify({ version, files }));
}
