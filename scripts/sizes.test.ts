/** What a page loads of the packages: bundled, minified and compressed as for a web server. */
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { expect, test } from 'vitest';

async function bundled(contents: string) {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: import.meta.dirname, loader: 'ts' },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    legalComments: 'none',
    write: false,
  });
  const [file] = outputFiles;
  return { text: file?.text ?? '', gzip: gzipSync(file?.contents ?? '').length };
}

test.each([
  ['the whole client', "export * from '@posthouse/client';", 140_000],
  ['isClientError alone', "export { isClientError } from '@posthouse/client';", 1_000],
  ['noblePrimitives', "export { noblePrimitives } from '@posthouse/protocol/crypto';", 30_000],
])('a page loads %s in few bytes', async (_what, contents, most) => {
  const { text, gzip } = await bundled(contents);
  expect(text).not.toBe('');
  expect(gzip).toBeLessThanOrEqual(most);
});

test('the client compiles no source text, which a strict Content Security Policy forbids', async () => {
  const { text } = await bundled("export * from '@posthouse/client';");
  expect(text).toContain('must have required properties');
  expect(text).not.toMatch(/new\s*\(?(globalThis\.)?Function\b|\beval\(/);
});
