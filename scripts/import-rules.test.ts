/** Checks that the rules of `biome.json` refuse what they should: imports, cycles, lengths, promises. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

const root = dirname(import.meta.dirname);

interface Sample {
  readonly file: string;
  readonly line: string;
}

/** Returns the samples that a rule of this repository refuses, checked in a temporary folder. */
function refused(samples: readonly Sample[], rule = 'style/noRestrictedImports'): Sample[] {
  const folder = mkdtempSync(join(tmpdir(), 'posthouse-rules-'));
  try {
    copyFileSync(join(root, 'biome.json'), join(folder, 'biome.json'));
    for (const { file, line } of samples) {
      mkdirSync(join(folder, dirname(file)), { recursive: true });
      writeFileSync(join(folder, file), `${line}\n`);
    }
    const arguments_ = ['lint', '--vcs-enabled=false', `--only=${rule}`];
    const { stdout } = spawnSync(
      join(root, 'node_modules/.bin/biome'),
      [...arguments_, '--reporter=json', '--max-diagnostics=none', '.'],
      { cwd: folder, encoding: 'utf8' },
    );
    const report: { diagnostics: { location: { path: string } }[] } = JSON.parse(stdout);
    const files = new Set(report.diagnostics.map(({ location }) => location.path));
    return samples.filter(({ file }) => files.has(file) || files.has(`./${file}`));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const sample = (file: string, names: string, from: string): Sample => ({
  file: `packages/${file}`,
  line: `import ${names} from '${from}';`,
});

const bad = [
  sample('protocol/src/a.ts', '{ a }', 'node:fs'),
  sample('protocol/src/json/b.ts', '{ a }', 'node:crypto'),
  sample('protocol/src/c.ts', 'type { A }', '@posthouse/protocol/node'),
  sample('protocol/src/identity/d.ts', '{ a }', '../node/primitives.ts'),
  sample('protocol/src/node/d.ts', '{ a }', '@posthouse/relay'),
  sample('conformance/src/e.ts', '{ a }', '@posthouse/client'),
  sample('peer/src/e.ts', '{ a }', '@posthouse/relay'),
  sample('peer/src/noise/e.ts', '{ a }', '@libp2p/noise'),
  sample('client/src/e.ts', '{ a }', '@posthouse/peer'),
  sample('client/src/f.ts', '{ a }', 'node:fs'),
  sample('client/src/messages/g.ts', '{ a }', '@posthouse/protocol/node'),
  sample('client/src/messages/g2.ts', '{ a }', '@posthouse/protocol/node/sealing'),
  sample('client/src/courier/h.ts', '{ a }', '@posthouse/relay'),
  sample('relay/src/i.ts', '{ a }', '@posthouse/conformance'),
  sample('relay/src/j.ts', '{ a }', '@posthouse/client/node'),
  sample('relay/src/jobs/k.ts', '{ a }', 'node:sqlite'),
  sample('relay/src/messages/l.ts', '{ a }', '../accounts/store.ts'),
  sample('relay/src/messages/methods/m.ts', '{ a }', '../../accounts/rules.ts'),
  sample('relay/src/accounts/methods/n.ts', '{ a }', '../../groups/methods/group.create.ts'),
  sample('relay/src/about/o.ts', '{ a }', '../channels/store.ts'),
  sample('relay/src/storage/p.ts', '{ a }', '../accounts/store.ts'),
  sample('relay/src/storage/q.ts', '{ a }', 'node:sqlite'),
  sample('relay/src/storage/move/r.ts', '{ a }', 'pg'),
  sample('relay/src/storage/sqlite/s.ts', '{ a }', 'pg'),
  sample('relay/src/storage/postgres/t.ts', '{ a }', 'node:sqlite'),
  sample('relay/src/messages/rules.ts', '{ a }', './store.ts'),
  sample('relay/src/accounts/rules.ts', '{ a }', '../storage/sqlite/storage.ts'),
  sample('relay/src/groups/rules.ts', '{ type A, b }', './queue-store.ts'),
  sample('relay/src/groups/chain/u.ts', '{ a }', '../requests/approvals.ts'),
  sample('relay/src/groups/reading/v.ts', '{ a }', '../upkeep/batches.ts'),
  sample('relay/src/groups/requests/w.ts', '{ a }', '../methods/group.create.ts'),
  sample('relay/src/groups/upkeep/x.ts', '{ a }', '../reading/read-access.ts'),
  sample('relay/src/groups/chain/y.ts', '{ a }', '../../accounts/caller.ts'),
  sample('relay/src/groups/chain/z.ts', '{ a }', 'node:sqlite'),
];

const good = [
  sample('protocol/src/a-good.ts', '{ a }', '@noble/hashes/sha2.js'),
  sample('protocol/src/node/b.ts', '{ a }', 'node:crypto'),
  sample('protocol/test/b.ts', '{ a }', 'node:fs'),
  sample('peer/src/e-good.ts', '{ a }', '@posthouse/protocol/federation'),
  sample('peer/test/e.ts', '{ a }', 'libp2p'),
  sample('relay/src/federation/e.ts', '{ a }', '@posthouse/peer'),
  sample('conformance/src/seat/e.ts', '{ a }', '@posthouse/peer/raw'),
  sample('client/src/node.ts', '{ a }', '@posthouse/protocol/node'),
  sample('client/src/courier/files.ts', '{ a }', 'node:fs'),
  sample('client/test/c.ts', '{ a }', '@posthouse/relay'),
  sample('relay/test/d.ts', '{ a }', '@posthouse/conformance'),
  sample('relay/src/storage/sqlite/connection.ts', '{ a }', 'node:sqlite'),
  sample('relay/src/storage/postgres/connections.ts', '{ a }', 'pg'),
  sample('relay/src/messages/e.ts', '{ a }', '../accounts/index.ts'),
  sample('relay/src/messages/methods/f.ts', '{ a }', '../store.ts'),
  sample('relay/src/channels/rules.ts', 'type { A }', './store.ts'),
  sample('relay/src/auth/rules.ts', '{ a }', '@posthouse/protocol'),
  sample('relay/src/groups/chain/g.ts', '{ a }', '../requests/invite-store.ts'),
  sample('relay/src/groups/upkeep/h.ts', '{ a }', '../chain/load-group.ts'),
  sample('relay/src/groups/methods/i.ts', '{ a }', '../upkeep/expiry-job.ts'),
];

test('imports across the walls of the design are refused, every one', () => {
  expect(refused(bad)).toEqual(bad);
});

test('imports along the ways of the design pass', () => {
  expect(refused(good)).toEqual([]);
});

const lines = (count: number, text: string) => Array(count).fill(text).join('\n');
const functionOf = (count: number) => `export function f() {\n${lines(count, '  g();')}\n}`;

test.each([
  {
    rule: 'suspicious/noImportCycles',
    bad: [
      {
        file: 'packages/relay/src/a.ts',
        line: "import type { B } from './b.ts';\nexport type A = B;",
      },
      {
        file: 'packages/relay/src/b.ts',
        line: "import type { A } from './a.ts';\nexport type B = A;",
      },
    ],
    good: [
      {
        file: 'packages/relay/src/c.ts',
        line: "import type { D } from './d.ts';\nexport type C = D;",
      },
      { file: 'packages/relay/src/d.ts', line: 'export type D = string;' },
    ],
  },
  {
    rule: 'nursery/noFloatingPromises',
    bad: [{ file: 'packages/relay/src/a.ts', line: 'async function f() {}\nf();' }],
    good: [
      { file: 'packages/relay/src/b.ts', line: 'async function f() {}\nvoid f();\nawait f();' },
    ],
  },
  {
    rule: 'complexity/noExcessiveLinesPerFunction',
    bad: [{ file: 'packages/client/src/a.ts', line: functionOf(71) }],
    good: [{ file: 'packages/client/src/b.ts', line: functionOf(70) }],
  },
  {
    rule: 'style/noExcessiveLinesPerFile',
    bad: [{ file: 'packages/relay/src/a.ts', line: lines(401, 'g();') }],
    good: [{ file: 'packages/relay/src/b.ts', line: lines(400, 'g();') }],
  },
])('$rule is an error', ({ rule, bad, good }) => {
  expect(refused([...bad, ...good], rule)).toEqual(bad);
});
