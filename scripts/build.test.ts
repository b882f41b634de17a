/** The packages that `npm run build` makes, used as another project would: packed, unpacked, imported. */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const root = dirname(import.meta.dirname);
const folder = mkdtempSync(join(tmpdir(), 'posthouse-build-'));
const names = readdirSync(join(root, 'packages'));

/** Packs a built package and unpacks it below `node_modules` of the folder. */
function install(name: string): void {
  const dist = join(root, 'packages', name, 'dist');
  const packed = execFileSync('npm', ['pack', '--json', '--pack-destination', folder], {
    cwd: dist,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const target = join(folder, 'node_modules', '@posthouse', name);
  mkdirSync(target, { recursive: true });
  const [{ filename }] = JSON.parse(packed) as [{ filename: string }];
  execFileSync('tar', ['-xzf', join(folder, filename), '-C', target, '--strip-components=1']);
}

beforeAll(() => {
  execFileSync(process.execPath, [join(root, 'scripts/build.ts')], { stdio: 'inherit' });
  mkdirSync(join(folder, 'node_modules'));
  for (const entry of readdirSync(join(root, 'node_modules'))) {
    if (entry === '@posthouse' || entry === '.bin') continue;
    symlinkSync(join(root, 'node_modules', entry), join(folder, 'node_modules', entry));
  }
  for (const name of names) install(name);
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
}, 300_000);

afterAll(() => rmSync(folder, { recursive: true }));

interface Published {
  readonly exports: Record<string, { types: string; default: string } | string>;
  readonly bin?: Record<string, string>;
  readonly [member: string]: unknown;
}

const manifestOf = (name: string): Published =>
  JSON.parse(
    readFileSync(join(folder, 'node_modules/@posthouse', name, 'package.json'), 'utf8'),
  ) as Published;

/** Names to import the package's modules by; entries for files of data are left out. */
const modulesOf = (name: string): string[] =>
  Object.entries(manifestOf(name).exports)
    .filter(([, target]) => typeof target !== 'string')
    .map(([entry]) => `@posthouse/${name}${entry.slice(1)}`);

/** Runs a file of the folder with Node, which finds no TypeScript there to fall back on. */
function run(file: string, ...parameters: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [file, ...parameters], {
    cwd: folder,
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

describe.each(names)('@posthouse/%s as published', (name) => {
  test('every entry point imports in plain Node', () => {
    const lines = modulesOf(name).map((module) => `await import('${module}');`);
    writeFileSync(join(folder, `import-${name}.js`), lines.join('\n'));
    expect(run(`import-${name}.js`)).toEqual({ status: 0, stdout: '', stderr: '' });
  });

  test('every command prints its help', () => {
    for (const path of Object.values(manifestOf(name).bin ?? {})) {
      const { status, stdout } = run(join('node_modules/@posthouse', name, path), '--help');
      expect([status, stdout]).toEqual([0, expect.stringContaining('Usage:')]);
    }
  });

  test('holds no sources and no development dependencies, but the licence', () => {
    const files = readdirSync(join(folder, 'node_modules/@posthouse', name), {
      recursive: true,
      encoding: 'utf8',
    });
    expect(files.filter((file) => /\.ts$/.test(file) && !file.endsWith('.d.ts'))).toEqual([]);
    expect(files).toContain('LICENSE');
    expect(Object.keys(manifestOf(name))).not.toContain('devDependencies');
  });
});

test('the published vectors are imported by name', () => {
  const lines = [
    "import accounts from '@posthouse/protocol/vectors/accounts.json' with { type: 'json' };",
    'console.log(accounts.source);',
  ];
  writeFileSync(join(folder, 'vectors.js'), lines.join('\n'));
  expect(run('vectors.js')).toEqual({ status: 0, stdout: '01 §7, §12; 02 §8\n', stderr: '' });
});

test('the published relay works: its command makes keys and reads them again', () => {
  const command = 'node_modules/@posthouse/relay/main.js';
  const flags = ['--dev', '--data', join(folder, 'data')];
  const made = run(command, 'init', ...flags);
  const again = run(command, 'init', ...flags);
  expect([made.status, made.stderr]).toEqual([0, '']);
  expect(made.stdout).toMatch(/relay id 0x[0-9a-f]{40}/);
  expect(again.stdout).toBe(made.stdout.replace('keys made', 'keys there already'));
});

test('the declarations serve another project’s compiler', () => {
  const lines = names.flatMap((name) =>
    modulesOf(name).map((module, index) => `import * as ${name}_${index} from '${module}';`),
  );
  const used = lines.map((line) => /as (\w+)/.exec(line)?.[1]);
  const source = [
    ...lines,
    "import { Network, type ChannelPost } from '@posthouse/protocol';",
    "import { noblePrimitives } from '@posthouse/protocol/crypto';",
    'export const network = new Network({ context: "", primitives: noblePrimitives });',
    'export const id = (post: ChannelPost): string => post.message_id;',
    '// @ts-expect-error a channel post has no such member',
    'export const none = (post: ChannelPost): string => post.subject;',
    `export const all = [${used.join(', ')}];`,
  ];
  writeFileSync(join(folder, 'user.ts'), source.join('\n'));
  const options = {
    compilerOptions: {
      strict: true,
      noEmit: true,
      module: 'NodeNext',
      target: 'ES2024',
      lib: ['ES2025', 'ESNext.Disposable'],
      types: ['node'],
      skipLibCheck: true,
    },
    files: ['user.ts'],
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(options));
  const { status, stdout } = spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', folder], {
    encoding: 'utf8',
  });
  expect([status, stdout]).toEqual([0, '']);
});
