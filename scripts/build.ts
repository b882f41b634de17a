/**
 * `npm run build`: publishable packages. For each workspace, `packages/<name>/dist` gets JavaScript,
 * declarations and a `package.json` that points to them; `npm publish packages/<name>/dist` would
 * publish it. What other programs import is one module for each source; commands are bundled.
 * During development the packages point to their sources and need no build.
 */
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { buildAdminPage, buildMessenger } from '../packages/web/build.ts';
import { bundleCommands, bundleFolder, findWorkers } from './bundle.ts';
import { writePages } from './published-pages.ts';
import { bundleParser } from './small-markdown.ts';
import { noticesOf } from './third-party.ts';

const root = dirname(import.meta.dirname);

/** The parts of a development `package.json` the build reads. */
interface Manifest {
  readonly name: string;
  readonly engines: { readonly node: string };
  readonly exports: Readonly<Record<string, string>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly [member: string]: unknown;
}

interface Package {
  readonly folder: string;
  readonly manifest: Manifest;
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(path, 'utf8'));
}

function writeJson(path: string, value: unknown): void {
  writeFileSync(path, `${JSON.stringify(value, undefined, 2)}\n`);
}

/** The workspaces to publish, each after those it depends on. */
function packagesInOrder(): Package[] {
  const { workspaces } = readJson(join(root, 'package.json')) as { workspaces: string[] };
  const all = workspaces.map((path) => ({
    folder: join(root, path),
    manifest: readJson(join(root, path, 'package.json')) as Manifest,
  }));
  // The messenger is no package of its own: the relay's has it.
  const waiting = all.filter(({ manifest }) => manifest.private !== true);
  const ordered: Package[] = [];
  while (waiting.length > 0) {
    const names = waiting.map(({ manifest }) => manifest.name);
    const index = waiting.findIndex(
      ({ manifest }) => !names.some((name) => Object.hasOwn(manifest.dependencies ?? {}, name)),
    );
    if (index === -1) throw new Error(`packages depend on each other: ${names.join(', ')}`);
    ordered.push(...waiting.splice(index, 1));
  }
  return ordered;
}

/** `./src/main.ts` is emitted as `./main.js`. */
function emitted(source: string, extension: '.js' | '.d.ts'): string {
  const [, path] = /^\.\/src\/(.+)\.ts$/.exec(source) ?? [];
  if (path === undefined) throw new Error(`${source} is not ./src/….ts`);
  return `./${path}${extension}`;
}

/** The manifest to publish: entry points moved to the emitted files, development left out. */
function publishedManifest({
  exports,
  bin,
  devDependencies: _,
  scripts: __,
  ...rest
}: Manifest): object {
  const entries = Object.entries(exports).map(([name, source]) => [
    name,
    { types: emitted(source, '.d.ts'), default: emitted(source, '.js') },
  ]);
  const commands = Object.keys(bin ?? {}).map((name) => [name, `./${bundleFolder}/${name}.js`]);
  return {
    ...rest,
    exports: Object.fromEntries(entries),
    ...(bin === undefined ? {} : { bin: Object.fromEntries(commands) }),
  };
}

/** Where the compiler finds the packages built before this one: in their declarations. */
function pathsTo(built: readonly Package[]): Record<string, string[]> {
  const paths: Record<string, string[]> = {};
  for (const { folder, manifest } of built) {
    for (const [name, source] of Object.entries(manifest.exports)) {
      const types = join(folder, 'dist', emitted(source, '.d.ts'));
      paths[manifest.name + name.slice(1)] = [types];
    }
  }
  return paths;
}

/**
 * Compiles what other programs import, with the threads of it. TypeScript 7 has no programmatic
 * interface, so its command gets a configuration file.
 */
function compile({ folder, manifest }: Package, built: readonly Package[]): void {
  const config = join(folder, 'dist', 'tsconfig.json');
  writeJson(config, {
    extends: join(root, 'tsconfig.json'),
    compilerOptions: {
      noEmit: false,
      declaration: true,
      rewriteRelativeImportExtensions: true,
      rootDir: join(folder, 'src'),
      outDir: join(folder, 'dist'),
      paths: pathsTo(built),
    },
    include: [],
    files: [...Object.values(manifest.exports), ...findWorkers(folder)].map((source) =>
      join(folder, source),
    ),
  });
  const { status } = spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', config], {
    stdio: 'inherit',
  });
  rmSync(config);
  if (status !== 0) throw new Error(`${manifest.name} does not compile`);
  rewriteDeclarations(join(folder, 'dist'));
}

/** The compiler rewrites `.ts` of imports in JavaScript and leaves it in declarations. */
function rewriteDeclarations(dist: string): void {
  for (const file of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.d.ts')) continue;
    const path = join(dist, file);
    const text = readFileSync(path, 'utf8');
    writeFileSync(path, text.replace(/((?:from |import\()["']\.[^"']*)\.ts(["'])/g, '$1.js$2'));
  }
}

/** Files that belong in every package, and the schema of the relay's configuration. */
function copyRest({ folder }: Package): void {
  copyFileSync(join(root, 'LICENSE'), join(folder, 'dist/LICENSE'));
  writePages(folder);
  const schema = 'config.schema.json';
  if (existsSync(join(folder, schema))) {
    copyFileSync(join(folder, schema), join(folder, 'dist', schema));
  }
}

/** Puts the Markdown parser of the protocol package in the place of the module that imports it. */
async function putParser({ folder, manifest }: Package): Promise<void> {
  if (manifest.name !== '@posthouse/protocol') return;
  writeFileSync(join(folder, 'dist/markdown/parser.js'), await bundleParser());
  const notices = noticesOf([join(root, 'node_modules/markdown-it')]);
  writeFileSync(join(folder, 'dist/THIRD-PARTY-LICENSES'), notices);
}

/** Bundles the commands of a package that has some. */
async function bundle({ folder, manifest }: Package): Promise<void> {
  const { bin: commands, optionalDependencies = {} } = manifest;
  if (commands === undefined) return;
  const external = Object.keys(optionalDependencies);
  await bundleCommands({
    ...{ folder, out: join(folder, 'dist'), external },
    ...{ commands, workers: findWorkers(folder), node: manifest.engines.node },
  });
}

/** The relay's package has the messenger and the operator's page, built, to serve them. */
async function putPages({ folder, manifest }: Package): Promise<void> {
  if (manifest.name !== '@posthouse/relay') return;
  await buildMessenger(join(folder, 'dist/messenger'));
  await buildAdminPage(join(folder, 'dist/admin-page'));
}

const built: Package[] = [];
for (const one of packagesInOrder()) {
  const dist = join(one.folder, 'dist');
  rmSync(dist, { recursive: true, force: true });
  mkdirSync(dist);
  compile(one, built);
  copyRest(one);
  await putParser(one);
  await bundle(one);
  await putPages(one);
  writeJson(join(dist, 'package.json'), publishedManifest(one.manifest));
  built.push(one);
  console.log(`built ${one.manifest.name}`);
}
