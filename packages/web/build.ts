/**
 * Builds the messenger into `dist/`: a folder that any web server can serve; and the operator's page,
 * which a relay serves, into `dist-admin/`. Names have a digest of the content, so that they can be
 * kept for ever; `files.json` lists each with its digest and size. The same sources give the same
 * bytes. Fails if a part is larger than its budget.
 *
 * @example
 * node packages/web/build.ts
 */
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { type BuildOptions, build, type Metafile } from 'esbuild';
import { smallMarkdown } from '../../scripts/small-markdown.ts';
import { noticesOf } from '../../scripts/third-party.ts';
import { firstPart } from './first-part.ts';

const folder = import.meta.dirname;

/**
 * Bytes after gzip of what a first visit loads, of the largest part that is loaded when it is needed, and
 * of all parts with groups and channels, with QR codes, and with Markdown together.
 */
const budgets = {
  ...{ scripts: 175_000, styles: 8_000, later: 45_000 },
  ...{ rooms: 15_000, qr: 6_000, markdown: 20_000 },
} as const;

/** Sources of the parts that have a budget of their own. */
const partSources = {
  rooms: /^src\/(?:groups|channels)\//,
  qr: /^src\/account\/(?:qr|scan)\.|lean-qr/,
  markdown: /markdown/,
} as const;
/** Bytes after gzip of the operator's page. */
const adminBudget = 25_000;

/** A file of the app, as `files.json` lists it. */
export interface WebFile {
  readonly name: string;
  readonly type: string;
  readonly bytes: number;
  /** Bytes after gzip. */
  readonly gzip: number;
  /** SHA-256, base64. */
  readonly sha256: string;
  /** Whether the name changes with the content. */
  readonly immutable: boolean;
}

const types: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
  webmanifest: 'application/manifest+json',
};

const common = {
  ...{ bundle: true, minify: true, write: true, metafile: true, format: 'esm', target: 'es2024' },
  ...{ platform: 'browser', charset: 'utf8', legalComments: 'none' },
  plugins: [smallMarkdown],
  ...{ jsx: 'automatic', jsxImportSource: 'preact', absWorkingDir: folder, logLevel: 'warning' },
} as const satisfies BuildOptions;

/** Names with a digest, so that a file that changes has another name. */
const hashed = {
  ...{ entryNames: '[name]-[hash]', chunkNames: 'part-[hash]', splitting: true },
} as const;

const workerEntry = 'src/engine/account-worker.ts';
const handBackEntry = 'src/engine/hand-back-worker.ts';
const cryptographyEntry = 'src/account/cryptography.ts';
const pageEntry = 'src/main.tsx';
const styleEntry = 'src/style.css';

/** The file that esbuild wrote for an entry point. */
function outputOf({ outputs }: Metafile, entry: string): string {
  const found = Object.entries(outputs).find(([, { entryPoint }]) => entryPoint === entry);
  if (found === undefined) throw new Error(`${entry} was not built`);
  return basename(found[0]);
}

/** An output and all that it imports before it runs. */
function withImports({ outputs }: Metafile, name: string): Set<string> {
  const byName = new Map(Object.entries(outputs).map(([path, output]) => [basename(path), output]));
  const found = new Set([name]);
  for (const each of found) {
    for (const { path, kind } of byName.get(each)?.imports ?? []) {
      if (kind === 'import-statement') found.add(basename(path));
    }
  }
  return found;
}

const digest = (content: Uint8Array) => createHash('sha256').update(content).digest('base64');

/**
 * Builds the messenger into a folder, which is emptied before.
 *
 * @returns bytes after gzip of each part that has a budget
 * @throws Error if one is larger than its budget
 */
export async function buildMessenger(dist: string): Promise<Record<keyof typeof budgets, number>> {
  rmSync(dist, { recursive: true, force: true });
  mkdirSync(dist, { recursive: true });
  cpSync(join(folder, 'public'), dist, { recursive: true });
  const metafiles: Metafile[] = [];
  const built = async (options: BuildOptions) => {
    const result = await build({ ...common, outdir: dist, ...options });
    metafiles.push(result.metafile as Metafile);
    return result;
  };
  // Together: the client is in both.
  const worker = await built({ ...hashed, entryPoints: [workerEntry, handBackEntry] });
  const workerFile = outputOf(worker.metafile as Metafile, workerEntry);
  const handBackFile = outputOf(worker.metafile as Metafile, handBackEntry);
  // Apart: what it needs would be shared with the page, and loaded at the start.
  const apart = await built({ ...hashed, entryPoints: [cryptographyEntry] });
  const cryptographyFile = outputOf(apart.metafile as Metafile, cryptographyEntry);
  const { metafile: page } = await built({
    ...{ ...hashed, entryPoints: [pageEntry, styleEntry], external: [`./${cryptographyFile}`] },
    plugins: [...common.plugins, firstPart(pageEntry)],
    define: {
      WORKER_FILE: JSON.stringify(workerFile),
      HAND_BACK_FILE: JSON.stringify(handBackFile),
      CRYPTOGRAPHY_FILE: JSON.stringify(`./${cryptographyFile}`),
    },
  });
  const script = outputOf(page as Metafile, pageEntry);
  const style = outputOf(page as Metafile, styleEntry);
  const html = readFileSync(join(folder, 'src/index.html'), 'utf8');
  writeFileSync(join(dist, 'index.html'), html.replace('SCRIPT', script).replace('STYLE', style));
  const names = readdirSync(dist).sort();
  const version = versionOf(dist, names);
  // The page is `./`; its own name would be a second copy of it.
  const cached = ['./', ...names.filter((name) => name !== 'index.html')];
  await built({
    entryPoints: { sw: 'src/service-worker.ts' },
    define: { FILES: JSON.stringify(cached), VERSION: JSON.stringify(version) },
  });
  const files = writeList(dist, { version, metafiles });
  const first = new Set([
    ...withImports(worker.metafile as Metafile, workerFile),
    ...withImports(page as Metafile, script),
  ]);
  return checkedSizes(files, { first, metafiles });
}

/**
 * Builds the operator's page into a folder, which is emptied before.
 *
 * @returns its bytes after gzip
 * @throws Error if it is larger than its budget
 */
export async function buildAdminPage(dist: string): Promise<number> {
  rmSync(dist, { recursive: true, force: true });
  mkdirSync(dist, { recursive: true });
  cpSync(join(folder, 'public/icon.svg'), join(dist, 'icon.svg'));
  const [script, style] = ['src/admin/main.tsx', 'src/admin/admin.css'];
  const { metafile } = await build({
    ...{ ...common, ...hashed, outdir: dist, entryPoints: [script, style] },
  });
  const html = readFileSync(join(folder, 'src/admin/index.html'), 'utf8')
    .replace('SCRIPT', outputOf(metafile, script))
    .replace('STYLE', outputOf(metafile, style));
  writeFileSync(join(dist, 'index.html'), html);
  const version = versionOf(dist, readdirSync(dist).sort());
  const files = writeList(dist, { version, metafiles: [metafile] });
  const size = files.reduce((total, { gzip }) => total + gzip, 0);
  if (size <= adminBudget) return size;
  throw new Error(`admin page: ${size} bytes after gzip, more than ${adminBudget}`);
}

function versionOf(dist: string, names: readonly string[]): string {
  return digest(Buffer.from(names.map((name) => digest(readFileSync(join(dist, name)))).join()));
}

/** Writes each file of a folder compressed, too, lists them, and adds the licences of libraries. */
function writeList(
  dist: string,
  { version, metafiles }: { readonly version: string; readonly metafiles: readonly Metafile[] },
): WebFile[] {
  const files = readdirSync(dist)
    .sort()
    .map((name) => compressed(dist, name));
  writeFileSync(join(dist, 'files.json'), `${JSON.stringify({ version, files }, undefined, 2)}\n`);
  writeFileSync(join(dist, 'THIRD-PARTY-LICENSES'), noticesOf(librariesOf(metafiles)));
  return files;
}

/** Names of the outputs in which there is something of matching sources. */
function outputsOf({ outputs }: Metafile, source: RegExp): Set<string> {
  const found = Object.entries(outputs).filter(([, { inputs }]) =>
    Object.keys(inputs).some((path) => source.test(path)),
  );
  return new Set(found.map(([path]) => basename(path)));
}

/** Folders of the libraries whose code is in the built files. */
function librariesOf(metafiles: readonly Metafile[]): string[] {
  const inputs = metafiles.flatMap(({ outputs }) =>
    Object.values(outputs).flatMap(({ inputs }) => Object.keys(inputs)),
  );
  const libraries = inputs.flatMap((path) => {
    const [, library] = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path) ?? [];
    return library === undefined ? [] : [join(folder, library)];
  });
  return [...new Set(libraries)];
}

/** Writes a file compressed, too, and describes it. */
function compressed(dist: string, name: string): WebFile {
  const path = join(dist, name);
  const content = readFileSync(path);
  const type = types[name.split('.').at(-1) ?? ''];
  if (type === undefined) throw new Error(`${name}: no content type for its extension`);
  const gzip = gzipSync(content, { level: 9 });
  writeFileSync(`${path}.gz`, gzip);
  const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
  writeFileSync(`${path}.br`, brotliCompressSync(content, { params }));
  return {
    ...{ name, type, bytes: content.length, gzip: gzip.length, sha256: digest(content) },
    immutable: /-[A-Z0-9]{8}\.(?:js|css)$/.test(name),
  };
}

function checkedSizes(
  files: readonly WebFile[],
  {
    first,
    metafiles,
  }: { readonly first: ReadonlySet<string>; readonly metafiles: readonly Metafile[] },
) {
  const scripts = files.filter(({ name }) => name.endsWith('.js') && name !== 'sw.js');
  const sum = (of: readonly WebFile[]) => of.reduce((total, { gzip }) => total + gzip, 0);
  const later = scripts.filter(({ name }) => !first.has(name)).map(({ gzip }) => gzip);
  // The page and the worker have files of their own.
  const sizeOf = (part: keyof typeof partSources) => {
    const all = metafiles.map((each) => outputsOf(each, partSources[part]));
    const later = (names: ReadonlySet<string>) =>
      scripts.filter(({ name }) => names.has(name) && !first.has(name));
    return Math.max(...all.map((names) => sum(later(names))));
  };
  const sizes = {
    scripts: sum(scripts.filter(({ name }) => first.has(name))),
    styles: sum(files.filter(({ name }) => name.endsWith('.css'))),
    later: Math.max(0, ...later),
    ...{ rooms: sizeOf('rooms'), qr: sizeOf('qr'), markdown: sizeOf('markdown') },
  };
  for (const [part, size] of Object.entries(sizes)) {
    const budget = budgets[part as keyof typeof budgets];
    if (size > budget) throw new Error(`${part}: ${size} bytes after gzip, more than ${budget}`);
  }
  return sizes;
}

if (import.meta.main) {
  const sizes = await buildMessenger(join(folder, 'dist'));
  for (const [part, size] of Object.entries(sizes)) {
    const budget = budgets[part as keyof typeof budgets];
    process.stderr.write(`messenger, ${part}: ${size} of ${budget} bytes after gzip\n`);
  }
  const size = await buildAdminPage(join(folder, 'dist-admin'));
  process.stderr.write(`admin page: ${size} of ${adminBudget} bytes after gzip\n`);
}
