/** What a page loads of the packages: bundled, minified and compressed as the files of the messenger are. */
import { gzipSync } from 'node:zlib';
import { type BuildOptions, build } from 'esbuild';
import { expect, test } from 'vitest';
import { smallMarkdown } from './small-markdown.ts';

const options = {
  bundle: true,
  minify: true,
  format: 'esm',
  platform: 'browser',
  legalComments: 'none',
  plugins: [smallMarkdown],
  write: false,
} satisfies BuildOptions;

const input = (contents: string) =>
  ({ contents, resolveDir: import.meta.dirname, loader: 'ts' }) as const;

/** One file with everything, also with what is loaded later. */
async function bundled(contents: string) {
  const { outputFiles } = await build({ ...options, stdin: input(contents) });
  const [file] = outputFiles;
  return { text: file?.text ?? '', gzip: gzipSync(file?.contents ?? '', { level: 9 }).length };
}

/** The files that a page loads at its start. */
async function firstLoad(contents: string) {
  const { outputFiles, metafile } = await build({
    ...{ ...options, stdin: input(contents) },
    ...{ splitting: true, outdir: 'page', metafile: true, absWorkingDir: import.meta.dirname },
  });
  const first = new Set<string>();
  const add = (path: string) => {
    first.add(path);
    for (const { path: next, kind } of metafile.outputs[path]?.imports ?? []) {
      if (kind === 'import-statement' && !first.has(next)) add(next);
    }
  };
  add('page/stdin.js');
  const files = outputFiles.filter(({ path }) =>
    [...first].some((name) => path.endsWith(`/${name}`)),
  );
  return files.reduce((sum, file) => sum + gzipSync(file.contents, { level: 9 }).length, 0);
}

test.each([
  ['the whole client', "export * from '@posthouse/client';", 140_500],
  ['isClientError alone', "export { isClientError } from '@posthouse/client';", 1_000],
  ['noblePrimitives', "export { noblePrimitives } from '@posthouse/protocol/crypto';", 30_000],
  ['webPrimitives', "export { webPrimitives } from '@posthouse/client/web';", 32_000],
  ['a client in a worker', "export { clientInWorker } from '@posthouse/client/web';", 3_000],
  ['passkeys alone', "export * from '@posthouse/client/web/passkey';", 8_500],
  ['the Markdown parser', "export * from '@posthouse/protocol/markdown';", 27_000],
])('a page loads %s in few bytes', async (_what, contents, most) => {
  const { text, gzip } = await bundled(contents);
  expect(text).not.toBe('');
  expect(gzip).toBeLessThanOrEqual(most);
});

test('a page starts the client without the Markdown parser, in few bytes', async () => {
  const gzip = await firstLoad("export * from '@posthouse/client';");
  expect(gzip).toBeGreaterThan(50_000);
  expect(gzip).toBeLessThanOrEqual(106_000);
});

test('a worker starts the client without the Markdown parser, in few bytes', async () => {
  const gzip = await firstLoad("import '@posthouse/client/web/worker';");
  expect(gzip).toBeGreaterThan(50_000);
  expect(gzip).toBeLessThanOrEqual(146_000);
});

test('the client compiles no source text, which a strict Content Security Policy forbids', async () => {
  const { text } = await bundled("export * from '@posthouse/client';");
  expect(text).toContain('must have required properties');
  expect(text).not.toMatch(/new\s*\(?(globalThis\.)?Function\b|\beval\(/);
});
