/**
 * `npm run check:examples`: type-checks the `@example` blocks of the published packages, so that no
 * example uses a name, member or parameter that does not exist. Each block becomes a module of its
 * own in `node_modules/.cache/examples`: the exported names that it uses are imported, and the
 * values that it uses without declaring them are declared as listed in `examples-given.ts`.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { given } from './examples-given.ts';

/** Modules whose types {@link given} names. */
const typeImports = [
  "import type * as Sdk from '@posthouse/client';",
  "import type * as Peer from '@posthouse/peer';",
  "import type * as Protocol from '@posthouse/protocol';",
  "import type * as Crypto from '@posthouse/protocol/crypto';",
  "import type * as Federation from '@posthouse/protocol/federation';",
  "import type * as Json from '@posthouse/protocol/json';",
];

const root = dirname(import.meta.dirname);
const cache = join(root, 'node_modules/.cache/examples');

/** The modules whose exported names an example of a package may use without importing them. */
const modules: Readonly<Record<keyof typeof given, readonly string[]>> = {
  protocol: ['', '/crypto', '/federation', '/json', '/node', '/progress', '/terminal'].map(
    (entry) => `@posthouse/protocol${entry}`,
  ),
  peer: ['@posthouse/peer', '@posthouse/protocol'],
  client: ['', '/encrypted-store', '/hand-back', '/node', '/publish-again', '/web', '/web/passkey']
    .map((entry) => `@posthouse/client${entry}`)
    .concat('@posthouse/protocol'),
};

interface Example {
  /** `file:line` of the block that holds it. */
  readonly origin: string;
  readonly code: string;
}

/** The examples of a source text, without the comment's frame. */
function examplesOf(file: string): Example[] {
  const text = readFileSync(join(root, file), 'utf8');
  return [...text.matchAll(/\/\*\*(?:[^*]|\*(?!\/))*\*\//g)].flatMap((block) => {
    const line = text.slice(0, block.index).split('\n').length;
    const lines = block[0].split('\n').map((one) => one.replace(/^\s*\*(?:\/| |$)/, ''));
    const [, ...examples] = lines.join('\n').split(/^@example\b/m);
    return examples.map((example) => ({
      origin: `${file}:${line}`,
      code: (example.split(/^@\w+/m)[0] as string).trim(),
    }));
  });
}

/** Names that the statements of a code declare or import at their top level. */
function declaredNames(code: string): Set<string> {
  const heads = code.matchAll(
    /^(?:(?:const|let|function|(?:await )?using)\b([^=(]*)|import\b([^;]*?)\bfrom\b)/gm,
  );
  return new Set(
    [...heads].flatMap(([, head, names]) => (head ?? names ?? '').match(/\w+/g) ?? []),
  );
}

/** Names a code uses: as values, not as members or in texts. */
function usedNames(code: string): Set<string> {
  const bare = code.replace(/\/\/.*$|'[^'\n]*'/gm, '');
  return new Set(bare.match(/(?<!\w|(?<!\.\.)\.)[A-Za-z]\w*/g));
}

/** The module of an example. */
function moduleOf(
  { origin, code }: Example,
  exported: ReadonlyMap<string, string>,
  values: Readonly<Record<string, string>>,
): string {
  const declared = declaredNames(code);
  const used = [...usedNames(code)].filter((name) => !declared.has(name));
  const imports = used.filter((name) => exported.has(name));
  const declarations = used.filter((name) => !exported.has(name) && Object.hasOwn(values, name));
  return [
    `// ${origin}`,
    ...typeImports,
    ...imports.map((name) => `import { ${name} } from '${exported.get(name)}';`),
    ...declarations.map((name) => `declare const ${name}: ${values[name]};`),
    code,
    'export {};',
  ].join('\n');
}

/** The value names of modules, each with the module that exports it. */
async function exportedNames(names: readonly string[]): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const name of names) {
    for (const key of Object.keys(await import(name))) found.set(key, name);
  }
  return found;
}

rmSync(cache, { recursive: true, force: true });
mkdirSync(cache, { recursive: true });
const origins = new Map<string, string>();
for (const [name, entries] of Object.entries(modules)) {
  const exported = await exportedNames(entries);
  const folder = join('packages', name, 'src');
  for (const file of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.ts')) continue;
    for (const example of examplesOf(join(folder, file))) {
      const path = join(cache, `${name}-${origins.size}.ts`);
      writeFileSync(path, moduleOf(example, exported, given[name as keyof typeof given]));
      origins.set(relative(root, path), example.origin);
    }
  }
}
const options = { skipLibCheck: true, noUnusedLocals: false, types: ['node'] };
writeFileSync(
  join(cache, 'tsconfig.json'),
  JSON.stringify({
    extends: join(root, 'tsconfig.json'),
    compilerOptions: options,
    include: ['*.ts'],
  }),
);
const { status, stdout } = spawnSync('npx', ['tsc', '-p', cache, '--pretty', 'false'], {
  cwd: root,
  encoding: 'utf8',
});
console.log(stdout.replaceAll(/node_modules\/\S+?\.ts/g, (path) => origins.get(path) ?? path));
console.log(`${origins.size} examples checked`);
process.exitCode = status ?? 1;
