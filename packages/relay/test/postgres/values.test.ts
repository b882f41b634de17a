import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { PostgresStorage } from '../../src/storage/postgres/storage.ts';
import { TestPostgres } from '../support/postgres.ts';
import { ask, open, Told } from '../support/postgres-engine.ts';

let server: TestPostgres;
let storage: PostgresStorage;
const told = new Told();

beforeAll(async () => {
  server = await TestPostgres.start({ durable: false });
  // A locale that sorts a before B and takes no notice of blanks at first.
  await ask(
    server.url('postgres'),
    `CREATE DATABASE german ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'de-AT' LOCALE 'C'
      TEMPLATE template0`,
  );
  storage = await open(server.url('german'), { observer: told });
  await storage.write('relay', async (tx) => {
    await tx.run('CREATE TABLE texts (name TEXT NOT NULL PRIMARY KEY, other TEXT)');
    await tx.run('CREATE TABLE numbers (value BIGINT NOT NULL PRIMARY KEY)');
    await tx.run('ALTER TABLE numbers ADD COLUMN note TEXT');
  });
});
afterAll(async () => {
  await storage[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

const texts = ['a', 'B', 'b', 'ä', 'Z', 'a b', 'ab', '-a', 'é', 'e\u0301', '\u{1f600}', '\uffff'];
const byBytes = [...texts].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));

describe('texts in a database of another locale', () => {
  test('sort, compare and differ byte by byte', async () => {
    await storage.write('texts', async (tx) => {
      for (const text of texts) {
        await tx.run('INSERT INTO texts (name, other) VALUES (?, ?)', text, text);
      }
    });
    const rows = (sql: string) =>
      storage.read(async (tx) => (await tx.all<{ name: string }>(sql)).map(({ name }) => name));
    expect(await rows('SELECT name FROM texts ORDER BY name')).toEqual(byBytes);
    expect(await rows('SELECT other AS name FROM texts ORDER BY other DESC')).toEqual(
      byBytes.toReversed(),
    );
    expect(await rows(`SELECT name FROM texts WHERE name > 'Z' ORDER BY name`)).toEqual(
      byBytes.filter((text) => Buffer.from(text) > Buffer.from('Z')),
    );
    expect(await rows('SELECT MAX(name) AS name FROM texts')).toEqual([byBytes.at(-1)]);
    expect(
      await rows(`SELECT name FROM texts WHERE (name, other) > ('b', 'b') ORDER BY name`),
    ).toEqual(byBytes.slice(byBytes.indexOf('b') + 1));
  });

  test('of a column that was added later, too', async () => {
    const row = await storage.read((tx) =>
      tx.get(`SELECT collation_name AS name FROM information_schema.columns
        WHERE table_name = 'numbers' AND column_name = 'note'`),
    );
    expect(row).toEqual({ name: 'C' });
  });
});

describe('numbers', () => {
  const edges = [Number.MIN_SAFE_INTEGER, -1, 0, 2 ** 31, Number.MAX_SAFE_INTEGER];

  test('are the same on the way out as on the way in', async () => {
    await storage.write('numbers', async (tx) => {
      for (const value of edges) {
        await tx.run(`INSERT INTO numbers (value, note) VALUES (?, ?)`, value, `${value}`);
      }
    });
    const rows = await storage.read((tx) => tx.all('SELECT value FROM numbers ORDER BY value'));
    expect(rows).toEqual(edges.map((value) => ({ value })));
  });

  test('are sums and counts, and 0 and 1 where something is true', async () => {
    const row = await storage.read((tx) =>
      tx.get(`SELECT SUM(value) AS sum, COUNT(*) AS count, MAX(value) AS max,
          COUNT(*) > 1 AS several, COUNT(*) > 9 AS many
        FROM numbers WHERE value > -2 AND value < 4294967296`),
    );
    expect(row).toEqual({ sum: 2 ** 31 - 1, count: 3, max: 2 ** 31, several: 1, many: 0 });
  });

  test.each([
    ['a sum', 'SELECT SUM(value) AS value FROM numbers WHERE value > 0'],
    ['a column', 'SELECT 9007199254740992 AS value'],
    ['a fraction', 'SELECT AVG(value) AS value FROM numbers WHERE value < 1'],
  ])('that are no safe integers throw, once: %s', async (_, sql) => {
    let runs = 0;
    const read = storage.read(async (tx) => {
      runs += 1;
      return await tx.get(sql);
    });
    await expect(read).rejects.toThrow(/is not a safe integer/);
    const write = storage.write('numbers', async (tx) => {
      runs += 1;
      return await tx.get(sql);
    });
    await expect(write).rejects.toThrow(/is not a safe integer/);
    expect(runs).toBe(2);
    expect(told.events).toEqual([]);
  });

  test.each([
    ['a fraction', 0.5],
    ['an unsafe integer', 2 ** 53],
    ['U+0000', 'a\u0000b'],
    ['half a character', '\ud800'],
  ])('values that no engine stores are refused: %s', async (_, value) => {
    const write = storage.write('texts', (tx) =>
      tx.run('INSERT INTO texts (name) VALUES (?)', value),
    );
    await expect(write).rejects.toBeInstanceOf(TypeError);
  });
});

test('question marks in texts are no parameters', async () => {
  const row = await storage.read((tx) =>
    tx.get(`SELECT '?' AS text, 'it''s ?' AS quoted, CAST(? AS BIGINT) AS "a?"`, 7),
  );
  expect(row).toEqual({ text: '?', quoted: `it's ?`, 'a?': 7 });
});

test('more statements than are kept prepared', async () => {
  await storage.read(async (tx) => {
    for (let number = 0; number < 1_100; number += 1) {
      expect(await tx.get(`SELECT ${number} AS n`)).toEqual({ n: number });
    }
  });
});

test('a table that another process changes under prepared statements', async () => {
  const sql = 'SELECT * FROM texts WHERE name = ?';
  await using older = await open(server.url('german'), { connections: 1 });
  await older.read((tx) => tx.get(sql, 'a'));
  await using newer = await open(server.url('german'));
  await newer.write('relay', (tx) => tx.run('ALTER TABLE texts ADD COLUMN third BIGINT'));
  expect(await older.read((tx) => tx.get(sql, 'a'))).toEqual({
    name: 'a',
    other: 'a',
    third: null,
  });
});
