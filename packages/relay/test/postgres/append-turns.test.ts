/** Batches of several processes take turns under load (decision record 0027). */
import { Client } from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { locks } from '../../src/storage/postgres/sql.ts';
import type { PostgresStorage } from '../../src/storage/postgres/storage.ts';
import { TestPostgres } from '../support/postgres.ts';
import { ask, askUntil, open, Told } from '../support/postgres-engine.ts';
import { batches, makeThings, things } from './things.ts';

let server: TestPostgres;
let url: string;

beforeAll(async () => {
  server = await TestPostgres.start({ durable: false });
  url = await server.createDatabase();
  await using first = await open(url);
  await first.write('relay', makeThings);
});
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(async () => void (await ask(url, 'TRUNCATE things, heads')));

const add = (name: string, of: string, through: PostgresStorage) =>
  through.append(things, { name, of });

/** Holds the turn in a session of its own, as a process that stopped would. */
async function heldTurn() {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(`SELECT pg_advisory_lock(${locks.turn})`);
  return () => client.end();
}
const untilWaited = () =>
  askUntil(url, 'SELECT 1 FROM pg_locks WHERE NOT granted', (rows) => rows.length > 0);

test('0027: after a batch of 16 the next one waits, with all that arrives meanwhile', async () => {
  await using patient = await open(url, { timeouts: { turn: 30_000 } });
  const release = await heldTurn();
  await Promise.all(Array.from({ length: 16 }, (_, n) => add(`a${n}`, 'a', patient)));
  batches.length = 0;
  const early = add('early', 'b', patient);
  await untilWaited();
  const late = add('late', 'c', patient);
  await release();
  expect(await Promise.all([early, late])).toEqual([1, 1]);
  expect(batches).toEqual([2]);
});

test('0027: a batch whose turn does not come in time is stored without it', async () => {
  const told = new Told();
  await using hasty = await open(url, { observer: told, timeouts: { turn: 20 } });
  const release = await heldTurn();
  await Promise.all(Array.from({ length: 16 }, (_, n) => add(`a${n}`, 'a', hasty)));
  expect(await add('next', 'b', hasty)).toBe(1);
  expect(told.events).toEqual([]);
  await release();
});

test('0027: after its turn a batch waits for locks as long as ever', async () => {
  await using hasty = await open(url, { timeouts: { turn: 20 } });
  await Promise.all(Array.from({ length: 16 }, (_, n) => add(`a${n}`, 'a', hasty)));
  const seen: object[] = [];
  const asking: typeof things = {
    ...things,
    batch: {
      bytes: () => 1,
      async write(tx, inputs) {
        seen.push(...(await tx.all(`SELECT current_setting('lock_timeout') AS timeout`)));
        return inputs.map(() => 1);
      },
    },
  };
  await hasty.append(asking, { name: 'x', of: 'x' });
  expect(seen).toEqual([{ timeout: '10s' }]);
});

test('0027: an append that comes alone waits for no turn, and a process without others never does', async () => {
  const together = await open(url);
  const release = await heldTurn();
  expect(await add('alone', 'alone', together)).toBe(1);
  await together[Symbol.asyncDispose]();
  await using only = await open(url, { lockMode: 'alone', timeouts: { turn: 30_000 } });
  await Promise.all(Array.from({ length: 16 }, (_, n) => add(`a${n}`, 'a', only)));
  expect(await add('next', 'b', only)).toBe(1);
  await release();
});
