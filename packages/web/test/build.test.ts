/** The files of the messenger and of the operator's page: few bytes, the same from the same sources. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { afterAll, expect, test } from 'vitest';
import { buildAdminPage, buildMessenger } from '../build.ts';
import { firstPart } from '../first-part.ts';

const folder = mkdtempSync(join(tmpdir(), 'messenger-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('two builds are the same, byte by byte, and within their budgets', async () => {
  const [one, other] = ['one', 'other'].map((name) => join(folder, name));
  const sizes = await buildMessenger(one as string);
  expect(sizes.scripts).toBeGreaterThan(100_000);
  expect(sizes.scripts).toBeLessThanOrEqual(175_000);
  expect(sizes.styles).toBeLessThanOrEqual(8_000);
  expect(sizes.qr).toBeGreaterThan(2_000);
  expect(sizes.markdown).toBeGreaterThan(10_000);
  await buildMessenger(other as string);
  const names = readdirSync(one as string);
  expect(readdirSync(other as string)).toEqual(names);
  for (const name of names) {
    const [first, second] = [one, other].map((path) => readFileSync(join(path as string, name)));
    expect(first?.equals(second as Buffer), name).toBe(true);
  }
});

test('the operator’s page is at most 25,000 bytes after gzip, the same each time, and evaluates nothing', async () => {
  const [one, other] = ['admin-one', 'admin-other'].map((name) => join(folder, name)) as [
    string,
    string,
  ];
  expect(await buildAdminPage(one)).toBeLessThanOrEqual(25_000);
  await buildAdminPage(other);
  const names = readdirSync(one);
  expect(readdirSync(other)).toEqual(names);
  expect(names).toContain('index.html');
  for (const name of names) {
    const content = readFileSync(join(one, name));
    expect(content.equals(readFileSync(join(other, name))), name).toBe(true);
    if (!name.endsWith('.js') && !name.endsWith('.html')) continue;
    expect(content.toString(), name).not.toMatch(
      /\beval\(|new Function\(|style=|https?:\/\/(?!www\.w3)/,
    );
  }
});

test('its scripts have no HTML strings, no evaluated text and no address of others', () => {
  const built = join(folder, 'one');
  const scripts = readdirSync(built).filter((name) => name.endsWith('.js'));
  expect(scripts.length).toBeGreaterThan(5);
  for (const name of scripts) {
    const text = readFileSync(join(built, name), 'utf8');
    expect(text, name).not.toMatch(/\beval\(|new Function\(|document\.write/);
  }
});

test('a first visit loads one file, in whichever order the modules are read', async () => {
  const source = join(folder, 'source');
  mkdirSync(source);
  const files = {
    'page.ts': "import './shared.ts'; console.log(() => import('./later.ts'));",
    'later.ts': "import './shared.ts'; console.log('later');",
    'shared.ts': "console.log('shared');",
    'other.ts': "import './later.ts';",
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(source, name), text);
  const { promise: isRead, resolve: read } = Promise.withResolvers<void>();
  // `page.ts`, which loads it later, is read once it has been read for `other.ts`.
  const laterFirst: Plugin = {
    name: 'later first',
    setup({ onLoad }) {
      onLoad({ filter: /page\.ts$/ }, () => isRead.then(() => undefined));
      onLoad({ filter: /shared\.ts$/ }, () => void read());
    },
  };
  const { outputFiles } = await build({
    ...{ bundle: true, splitting: true, format: 'esm', write: false, outdir: 'dist' },
    ...{ absWorkingDir: source, entryPoints: ['page.ts', 'other.ts'] },
    plugins: [laterFirst, firstPart('page.ts')],
  });
  const [one, ...more] = outputFiles.filter(({ text }) => /'shared'|"shared"/.test(text));
  expect(one?.text).toMatch(/import\("\.\/later-\w+\.js"\)/);
  expect(more).toEqual([]);
});
