/** Whatever a relay may store arrives as it was, through both engines, in any amount. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { relayMigrations } from '../../src/modules.ts';
import type { DatabaseAddress } from '../../src/storage/move/move.ts';
import { type Batch, readBatch, readTables } from '../../src/storage/move/rows.ts';
import type { Writer } from '../../src/storage/types.ts';
import { contents, Databases, furnish, move, open, putEnvelope } from './databases.ts';

let databases: Databases;

beforeAll(async () => {
  databases = await Databases.start();
});
afterAll(() => databases[Symbol.asyncDispose]());

/** Moves through both engines and compares at each stop. */
async function travels(work: (tx: Writer) => Promise<void>): Promise<void> {
  const stops = [await databases.sqlite(), await databases.postgres(), await databases.sqlite()];
  await furnish(stops[0] as DatabaseAddress, work);
  const first = await contents(stops[0] as DatabaseAddress);
  const seen = new Set<string>();
  for (const [index, to] of stops.slice(1).entries()) {
    const { state, tables } = await move(stops[index] as DatabaseAddress, to);
    expect(state).toBe('moved');
    seen.add(JSON.stringify(tables.map(({ table, source }) => [table, source])));
    seen.add(JSON.stringify(tables.map(({ table, target }) => [table, target])));
    expect(await contents(to)).toEqual(first);
  }
  expect(seen.size).toBe(1);
}

const awkward = [
  '',
  ' ',
  "it's",
  '"',
  '\\',
  "\\'",
  '\n\r\t\u0001\u007f',
  '$1 ? :a @b',
  'é',
  'e\u0301',
  '\u00a0',
  '\ud7ff\ue000\uffff',
  '\u{10000}\u{10ffff}',
  '😀',
  '\ufeff',
  '{"a":[null,1e400]}',
  'x'.repeat(300_000),
];

test('awkward texts, as values and as keys, and integers at the edges', async () => {
  await travels(async (tx) => {
    for (const [index, text] of awkward.entries()) {
      // Keys stay short enough for an index; PostgreSQL takes no longer ones.
      await putEnvelope(tx, text.slice(0, 100), text);
      await tx.run(
        'INSERT INTO timeline_boxes (account, device_id, sequence, key_box) VALUES (?, ?, ?, ?)',
        text.slice(0, 100),
        awkward[(index * 7) % awkward.length]?.slice(0, 100) ?? '',
        [Number.MIN_SAFE_INTEGER, -1, 0, 1, Number.MAX_SAFE_INTEGER][index % 5] ?? 0,
        text,
      );
    }
    for (const head of [Number.MIN_SAFE_INTEGER, 0, Number.MAX_SAFE_INTEGER]) {
      await tx.run('INSERT INTO timeline_heads (account, head) VALUES (?, ?)', `${head}`, head);
    }
    await tx.run("INSERT INTO auth_sessions VALUES ('t', 'ann', 'account', NULL, 'o', 1, 0)");
    await tx.run("INSERT INTO auth_sessions VALUES ('u', 'ann', 'device', '', 'o', 1, 0)");
  });
});

const text = fc
  .string({ unit: 'binary', maxLength: 12 })
  .filter((value) => value.isWellFormed() && !value.includes('\0'));
const integer = fc.maxSafeInteger();

test('any texts and integers', async () => {
  const row = fc.tuple(text, text, integer, text);
  const rows = fc.uniqueArray(row, {
    minLength: 700,
    maxLength: 1_500,
    selector: (values) => JSON.stringify(values.slice(0, 3)),
  });
  await fc.assert(
    fc.asyncProperty(rows, async (all) => {
      await travels(async (tx) => {
        for (const values of all) {
          await tx.run('INSERT INTO timeline_boxes VALUES (?, ?, ?, ?)', ...values);
        }
      });
    }),
    { numRuns: 5 },
  );
});

test('more rows and more bytes than one portion holds, and a row that is more than one', async () => {
  await travels(async (tx) => {
    for (let count = 0; count < 2_000; count += 1) await putEnvelope(tx, `${count}`, 'short');
    for (let count = 0; count < 100; count += 1) {
      await putEnvelope(tx, `large ${count}`, String(count).repeat(100_000));
    }
    await putEnvelope(tx, 'larger', '😀'.repeat(1_500_000));
  });
});

test('a portion is bounded in rows and in bytes, but for a row that alone is more', async () => {
  const database = await databases.sqlite();
  await furnish(database, async (tx) => {
    for (let count = 0; count < 600; count += 1) await putEnvelope(tx, `a ${count}`, 'short');
    for (let count = 0; count < 60; count += 1) await putEnvelope(tx, `b ${count}`, wide(262_144));
    await putEnvelope(tx, 'c', wide(5_000_000));
    await putEnvelope(tx, 'd', 'short');
  });
  await using storage = await open(database);
  const table = (await readTables(storage)).find(({ name }) => name === 'message_envelopes');
  if (table === undefined) throw new Error('there is no such table');
  const portions: Batch[] = [];
  do {
    const after = portions.at(-1)?.last;
    portions.push(await storage.read((tx) => readBatch(tx, table, after)));
  } while (portions.at(-1)?.last !== undefined);
  expect(portions.flatMap(({ rows }) => rows)).toHaveLength(662);
  for (const { rows } of portions) {
    const bytes = rows.map(({ envelope }) => Buffer.byteLength(String(envelope)));
    expect(rows.length).toBeLessThanOrEqual(512);
    if (rows.length > 1) expect(bytes.reduce((a, b) => a + b)).toBeLessThanOrEqual(4 * 1_048_576);
  }
});

/** A text of so many bytes, not of so many characters. */
const wide = (bytes: number) => 'é'.repeat(bytes / 2);

test.each(['sqlite', 'postgres'] as const)(
  'on %s, a full table ends in a full portion',
  async (engine) => {
    for (const rows of [511, 512, 513, 1_024]) {
      const [from, to] = [await databases.empty(engine), await databases.empty(engine)];
      await furnish(from, async (tx) => {
        for (let count = 0; count < rows; count += 1) await putEnvelope(tx, `${count}`, '');
      });
      const { tables } = await move(from, to);
      const { source, target } = tables.find(({ table }) => table === 'message_envelopes') ?? {};
      expect([source?.rows, target?.rows]).toEqual([rows, rows]);
    }
  },
);

test('every table of a relay has a key, and refers to no other, which no order of copying minds', async () => {
  for (const engine of ['sqlite', 'postgres'] as const) {
    const database = await databases.empty(engine);
    await furnish(database);
    await using storage = await open(database);
    for (const { name, key } of await readTables(storage)) {
      expect(key.length, name).toBeGreaterThan(0);
    }
  }
  const statements = relayMigrations.flatMap((migration) => migration.statements);
  expect(statements.filter((sql) => /\bREFERENCES\b/i.test(sql))).toEqual([]);
});
