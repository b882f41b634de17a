import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { PostgresStorage } from '../../src/storage/postgres/storage.ts';
import { UnknownCommits } from '../../src/storage/postgres/unknown-commits.ts';
import { CuttingProxy } from '../support/cutting-proxy.ts';
import { TestPostgres } from '../support/postgres.ts';
import { ask, counters, open, Told } from '../support/postgres-engine.ts';

let server: TestPostgres;
let url: string;
let told: Told;

beforeAll(async () => {
  server = await TestPostgres.start({ durable: true });
});
afterAll(() => server[Symbol.asyncDispose]());

beforeEach(async () => {
  url = await server.createDatabase();
  await using storage = await open(url);
  await counters.make(storage);
  told = new Told();
});

const value = async () => {
  await using storage = await open(url);
  return await counters.of(storage, 'a');
};

/** Counts runs; a run's value tells which one it was. */
function counting(storage: PostgresStorage) {
  const runs = { count: 0 };
  const done = storage.write('account:a', async (tx) => {
    runs.count += 1;
    await counters.add(tx, 'a');
    return `run ${runs.count}`;
  });
  return { runs, done };
}

describe('a COMMIT whose answer does not come', () => {
  test('that did not reach the server: done again, the value is that of the run that counts', async () => {
    await using proxy = await CuttingProxy.start(url);
    await using storage = await open(proxy.url, { observer: told });
    const cut = proxy.cut(/^COMMIT$/, { when: 'before' });
    const { runs, done } = counting(storage);
    expect(await done).toBe('run 2');
    await cut;
    expect(runs.count).toBe(2);
    expect(await value()).toBe(1);
    expect(told.events).toEqual(['lost', 'restored']);
  });

  test('that was executed: success, and not run again', async () => {
    await using proxy = await CuttingProxy.start(url);
    await using storage = await open(proxy.url, { observer: told });
    const cut = proxy.cut(/^COMMIT$/, { when: 'after' });
    const { runs, done } = counting(storage);
    expect(await done).toBe('run 1');
    await cut;
    expect(runs.count).toBe(1);
    expect(await value()).toBe(1);
    expect(told.events).toEqual(['lost', 'restored']);
  });

  test('that was executed, and the first question for it is cut off as well', async () => {
    await using proxy = await CuttingProxy.start(url);
    await using storage = await open(proxy.url);
    const cuts = [
      proxy.cut(/^COMMIT$/, { when: 'after' }),
      proxy.cut(/SELECT 1 FROM posthouse_commits/, { when: 'before' }),
      proxy.cut(/SELECT 1 FROM posthouse_commits/, { when: 'after' }),
    ];
    const { runs, done } = counting(storage);
    expect(await done).toBe('run 1');
    await Promise.all(cuts);
    expect(runs.count).toBe(1);
    expect(await value()).toBe(1);
  });

  test('its mark lost before the server: nothing is committed, it is done again', async () => {
    await using proxy = await CuttingProxy.start(url);
    await using storage = await open(proxy.url);
    await counting(storage).done;
    const cut = proxy.cut(/INSERT INTO posthouse_commits/, { when: 'before' });
    expect(await counting(storage).done).toBe('run 2');
    await cut;
    expect(await value()).toBe(2);
  });

  test.each([
    { when: 'before', applied: 0 },
    { when: 'after', applied: 1 },
  ] as const)(
    '$when it was executed, and the outcome is unknown: temporarily_unavailable',
    async (cut) => {
      await using proxy = await CuttingProxy.start(url);
      const timeouts = { outcome: 300, outcomeRetry: 20 };
      await using storage = await open(proxy.url, { observer: told, timeouts });
      const struck = proxy.cut(/^COMMIT$/, {
        when: cut.when,
        also() {
          proxy.refuse(true);
          proxy.cutAll();
        },
      });
      const { runs, done } = counting(storage);
      await expect(done).rejects.toMatchObject({
        code: 'temporarily_unavailable',
        message: 'the outcome of the commit is unknown: check, then try again',
      });
      await struck;
      expect(runs.count).toBe(1);
      expect(told.events).toEqual(['lost', 'commitUnknown']);
      proxy.refuse(false);
      expect(await value()).toBe(cut.applied);
      await counting(storage).done;
      expect(await value()).toBe(cut.applied + 1);
      await using other = await open(url, { observer: told });
      await other.write('account:b', (tx) => tx.get('SELECT 1 AS one'));
      // Its notices were not published: that it was applied is reported once it is known.
      const reports = cut.applied === 1 ? [['account:a'], ['account:b']] : [['account:b']];
      await told.untilUnannounced(reports.length);
      expect(told.unannouncedKeys.toSorted()).toEqual(reports);
    },
  );

  test('of a work that changed nothing: run again without asking', async () => {
    await using proxy = await CuttingProxy.start(url);
    await using storage = await open(proxy.url);
    const cut = proxy.cut(/^COMMIT$/, { when: 'after' });
    let runs = 0;
    const read = await storage.write('account:a', async (tx) => {
      runs += 1;
      return await tx.get('SELECT COUNT(*) AS count FROM counters');
    });
    await cut;
    expect(read).toEqual({ count: 0 });
    expect(runs).toBe(2);
    expect(
      proxy.statements.some((sql) => sql.includes('posthouse_commits WHERE connection =')),
    ).toBe(false);
  });

  test('of a crashed server that reuses the transaction ID for another transaction', async () => {
    await using proxy = await CuttingProxy.start(url);
    await using storage = await open(proxy.url, { timeouts: { call: 30_000, outcome: 30_000 } });
    await counting(storage).done;
    // Nothing of the write has reached the disk when the server crashes: the first writers after
    // it get the number of its transaction.
    proxy.refuse(true);
    const cut = proxy.cut(/^COMMIT$/, { when: 'before' });
    // A second connection of the pool would still answer; the question must come after the crash.
    const asked = proxy.cut(/SELECT 1 FROM posthouse_commits/, { when: 'before' });
    const { runs, done } = counting(storage);
    await cut;
    await server.crash();
    await server.start();
    await using other = await open(url);
    for (let count = 0; count < 20; count += 1) {
      await other.write('account:b', (tx) => counters.add(tx, 'b'));
    }
    proxy.refuse(false);
    expect(await done).toBe('run 2');
    await asked;
    expect(runs.count).toBe(2);
    expect(await value()).toBe(2);
  });

  test('while the old session still runs: the outcome is queried after its locks are free', async () => {
    await using proxy = await CuttingProxy.start(url);
    await using storage = await open(proxy.url, {
      timeouts: { lock: 20_000, call: 30_000, outcome: 30_000 },
    });
    // COMMIT is still running at the server while a deferred check waits for a row.
    await ask(
      url,
      `CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END $$`,
    );
    await ask(
      url,
      `CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON counters DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION wait()`,
    );
    await using holder = await open(url);
    const held = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const holding = holder.write('holder', async (tx) => {
      await tx.get('SELECT 1 AS one, pg_advisory_xact_lock(7)');
      begun.resolve();
      await held.promise;
    });
    await begun.promise;
    const { runs, done } = counting(storage);
    const waiting = `SELECT 1 AS one FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`;
    await untilRows(waiting, 1);
    proxy.cutAll();
    // The question waits for the locks of the write; the write waits for the holder.
    await untilRows(waiting, 2);
    held.resolve();
    await holding;
    expect(await done).toBe('run 1');
    expect(runs.count).toBe(1);
    expect(await value()).toBe(1);
  });
});

test.each([
  ['is answered', undefined],
  ['is refused', new Error('it was done before')],
])('a write that changes nothing is reported: it may be a repeat that %s', async (_, error) => {
  await using storage = await open(url, { observer: told });
  await counting(storage).done;
  expect(told.unannouncedKeys).toEqual([]);
  const repeat = storage.write(['account:a', 'account:b'], async (tx) => {
    await tx.get('SELECT value FROM counters');
    if (error !== undefined) throw error;
  });
  expect(await repeat.catch((thrown: unknown) => thrown)).toBe(error);
  const refused = storage.write('account:c', async (tx) => {
    await counters.add(tx, 'c');
    throw new Error('refused');
  });
  await expect(refused).rejects.toThrow('refused');
  expect(told.unannouncedKeys).toEqual([['account:a', 'account:b']]);
});

test('of a thousand commits with unknown outcomes each is looked up; of more, anything may have changed', async () => {
  const reports: unknown[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  await using unknown = new UnknownCommits({
    pause: 1,
    query: async ({ mark }) => mark.number % 2 === 0,
    committed: (keys) => {
      reports.push(keys);
      if (keys === 'any') resolve();
    },
  });
  for (let number = 0; number <= 1_000; number += 1) {
    unknown.add({ keys: [`account:${number}`], mark: { connection: 'one', number } });
  }
  await promise;
  expect(reports).toHaveLength(501);
  expect(reports.slice(0, 2)).toEqual([['account:0'], ['account:2']]);
});

async function untilRows(sql: string, count: number): Promise<void> {
  while ((await ask(url, sql)).length < count);
}

test('the rows of connections that are long over go, the engine has no table but that one', async () => {
  await ask(url, `INSERT INTO posthouse_commits VALUES ('old', 1, now() - INTERVAL '2 days')`);
  await using storage = await open(url);
  await counting(storage).done;
  const rows = await ask<{ connection: string }>(url, 'SELECT connection FROM posthouse_commits');
  expect(rows.map(({ connection }) => connection)).not.toContain('old');
  const tables = await storage.read((tx) => tx.all<{ table_name: string }>(storage.catalogueSql));
  expect([...new Set(tables.map((row) => row.table_name))]).toEqual(['counters']);
});
