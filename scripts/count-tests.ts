/**
 * Counts what `npm test` and `npm run test:long` run: tests, conformance checks and published vectors,
 * each by themselves, and runs by project of `vitest.config.ts`. One test counts once, on however many engines it runs.
 *
 *     npm run count:tests
 */
import { execFileSync } from 'node:child_process';
import { relative } from 'node:path';
import { checks } from '../packages/conformance/src/index.ts';

interface Listed {
  readonly name: string;
  readonly file: string;
  readonly projectName: string;
}

const kit = /^packages\/conformance\/test\/(kit|reversed-answers)\.test\.ts$/;
const vectors = /^packages\/protocol\/test\/interop\//;
const kinds = ['tests', 'conformance', 'vectors'] as const;

const text = execFileSync('npx', ['vitest', 'list', '--json'], {
  encoding: 'utf8',
  maxBuffer: 2 ** 28,
  stdio: ['ignore', 'pipe', 'inherit'],
});
const listed = JSON.parse(text.slice(text.indexOf('['))) as Listed[];
const byKind = Map.groupBy(listed, ({ file }) => {
  const path = relative('.', file);
  if (kit.test(path)) return 'conformance';
  return vectors.test(path) ? 'vectors' : 'tests';
});

console.log(`${checks.length} conformance checks`);
for (const kind of kinds) {
  const runs = byKind.get(kind) ?? [];
  const distinct = new Set(runs.map(({ file, name }) => `${file} ${name}`));
  const projects = Map.groupBy(runs, ({ projectName }) => projectName);
  const shares = [...projects].map(([project, of]) => `${project} ${of.length}`).sort();
  console.log(`${kind}: ${distinct.size}, ${runs.length} runs (${shares.join(', ')})`);
}
