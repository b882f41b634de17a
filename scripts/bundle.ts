/**
 * Bundles the commands of a package: what a process runs is one small file for the command and few
 * others, each loaded when it is needed, instead of a thousand modules of ours and of libraries.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { build, type Metafile, type Plugin } from 'esbuild';
import { smallMarkdown } from './small-markdown.ts';
import { noticesOf } from './third-party.ts';

/** Folder of the bundle in a published package. */
export const bundleFolder = 'bin';

/** Optional packages that libraries look for and we do not install. */
const absent = ['pg-native', 'utf-8-validate'];

/** What Fastify loads for routes with schemas and for tests, and the relay has neither. */
const unused = [
  '@fastify/ajv-compiler',
  '@fastify/fast-json-stringify-compiler',
  'light-my-request',
];

/**
 * `import` of `node:http` reads each member of the module, and one of them loads Node's own client for
 * `fetch`: 60 ms and 4 MiB that no command needs. `require` does not read them.
 */
const httpWithoutFetch: Plugin = {
  name: 'http-without-fetch',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:http$/ }, ({ kind }) =>
      kind === 'import-statement' ? { path: 'http', namespace: 'required' } : undefined,
    );
    onLoad({ filter: /.*/, namespace: 'required' }, () => ({
      contents: "module.exports = require('node:http');",
    }));
  },
};

/** Gives libraries in CommonJS the `require` that modules do not have. */
const banner =
  "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);";

export interface BundleOptions {
  /** Folder of the package. */
  readonly folder: string;
  /** Folder that gets the folder of the bundle, and the licences. */
  readonly out: string;
  /** Source of each command, by its name. */
  readonly commands: Readonly<Record<string, string>>;
  /** Sources that the package starts as threads. */
  readonly workers: readonly string[];
  /** Packages that are not part of the bundle: native code, found when the command runs. */
  readonly external: readonly string[];
  /** The oldest Node of the package: `>=24.14`, as in `engines`. */
  readonly node: string;
}

/**
 * Writes the file that is started for a command. It contains syntax of every Node, so that an older
 * one prints a sentence and not the place of a syntax error in the bundle, which it cannot read.
 */
function launcherOf(name: string, node: string): string {
  const [, version = '', major, minor = '0'] = /^>=((\d+)(?:\.(\d+))?)$/.exec(node) ?? [];
  if (major === undefined) throw new Error(`engines.node: expected >=major.minor, found ${node}`);
  return `#!/usr/bin/env node
const [major, minor] = process.versions.node.split('.').map(Number);
if (major > ${major} || (major === ${major} && minor >= ${minor})) {
  import('./${name}${programSuffix}.js');
} else {
  console.error('${name} needs Node ${version} or later, and this is ' + process.versions.node + ': install a newer Node.');
  process.exitCode = 1;
}
`;
}

/** What the file of the program has in its name, which the command's own file starts. */
const programSuffix = '-program';

/**
 * Writes the bundle of a package's commands, with the licences of what it contains.
 *
 * @throws Error if something cannot be bundled
 */
export async function bundleCommands({
  folder,
  out,
  commands,
  workers,
  external,
  node,
}: BundleOptions): Promise<void> {
  const threads = workers.map((path) => [basename(path, '.ts'), path] as const);
  const programs = Object.entries(commands).map(
    ([name, path]) => [`${name}${programSuffix}`, path] as const,
  );
  const entries = [...programs, ...threads];
  if (new Set(entries.map(([name]) => name)).size < entries.length) {
    throw new Error(`two commands or threads have one name: ${entries.join(' ')}`);
  }
  const outdir = join(out, bundleFolder);
  mkdirSync(outdir);
  const { metafile } = await build({
    entryPoints: Object.fromEntries(entries.map(([name, path]) => [name, join(folder, path)])),
    outdir,
    chunkNames: 'part-[hash]',
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: `node${node.slice('>='.length)}`,
    external: [...external, ...absent, ...unused],
    plugins: [httpWithoutFetch, smallMarkdown],
    banner: { js: banner },
    // Names of functions stay as they are: a stack can be read without the map, which Node reads
    // with --enable-source-maps only.
    minifySyntax: true,
    minifyWhitespace: true,
    sourcemap: 'linked',
    sourcesContent: false,
    legalComments: 'none',
    metafile: true,
    absWorkingDir: folder,
    logLevel: 'warning',
  });
  removeUnused(folder, metafile);
  for (const name of Object.keys(commands)) {
    writeFileSync(join(outdir, `${name}.js`), launcherOf(name, node), { mode: 0o755 });
  }
  writeFileSync(join(out, 'THIRD-PARTY-LICENSES'), noticesOf(libraries(folder, metafile)));
}

/** Removes parts that no file loads: the bundler also makes one for an `import()` in unused code. */
function removeUnused(folder: string, { outputs }: Metafile): void {
  const used = new Set<string>();
  const add = (path: string) => {
    if (used.has(path)) return;
    used.add(path);
    for (const { path: next } of outputs[path]?.imports ?? []) add(next);
  };
  for (const path of Object.keys(outputs)) if (!/\/part-[^/]+$/.test(path)) add(path);
  for (const path of Object.keys(outputs)) {
    if (!used.has(path.replace(/\.map$/, ''))) rmSync(join(folder, path));
  }
}

/** The folders of the packages in `node_modules` that a bundle contains. */
function libraries(folder: string, { inputs }: Metafile): string[] {
  const found = Object.keys(inputs).flatMap(
    (path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0] ?? [],
  );
  return [...new Set(found)].map((path) => join(folder, path));
}

/** What starts a thread: the path of its file, with the extension of the file that starts it. */
const threadPattern = /new URL\(`(\.\/[\w-]+)\$\{\w+\}`, import\.meta\.url\)/g;

/** Finds the sources below `folder`/src that are started as threads, as paths from `folder`. */
export function findWorkers(folder: string): string[] {
  const files = readdirSync(join(folder, 'src'), { recursive: true, encoding: 'utf8' });
  return files
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => {
      const text = readFileSync(join(folder, 'src', file), 'utf8');
      return [...text.matchAll(threadPattern)].map(([, path = '']) =>
        join('./src', file, '..', `${path}.ts`),
      );
    });
}
