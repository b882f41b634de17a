import { ProtocolError } from '@posthouse/protocol';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { PostgresStorage } from '../../src/storage/postgres/storage.ts';
import type { Writer } from '../../src/storage/types.ts';
import { CuttingProxy } from '../support/cutting-proxy.ts';
import { TestPostgres } from '../support/postgres.ts';
import { ask, askUntil, counters, open, Told } from '../support/postgres-engine.ts';

let server: TestPostgres;
let url: string;
let storage: PostgresStorage;
let told: Told;

beforeAll(async () => {
  server = await TestPostgres.start({ durable: false });
  url = await server.createDatabase();
  await using first = await open(url);
  await counters.make(first);
});
afterAll(() => server[Symbol.asyncDispose]());

beforeEach(async () => {
  told = new Told();
  await ask(url, 'DELETE FROM counters');
  storage = await open(url, { observer: told });
  return () => storage[Symbol.asyncDispose]();
});

const increment = (name: string) => (tx: Writer) => counters.add(tx, name);

/** Lets works go on when as many of them have come here. */
function meeting(count: number): () => Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let come = 0;
  return async () => {
    come += 1;
    if (come >= count) resolve();
    await promise;
  };
}

describe('a connection lost in the middle of a work', () => {
  test.each([
    ['before its first statement', /^BEGIN.*READ WRITE/, 'before'],
    ['after BEGIN', /^BEGIN.*READ WRITE/, 'after'],
    ['before a statement reached the server', /^INSERT INTO counters/, 'before'],
    ['when a statement was executed', /^INSERT INTO counters/, 'after'],
  ] as const)('%s: nothing of it stays, it runs again', async (_, statement, when) => {
    await using proxy = await CuttingProxy.start(url);
    await using through = await open(proxy.url);
    const cut = proxy.cut(statement, { when });
    expect(await through.write('account:a', increment('a'))).toBe(1);
    await cut;
    expect(await counters.of(storage, 'a')).toBe(1);
  });

  test('a work that makes something else of it: still run again', async () => {
    await using proxy = await CuttingProxy.start(url);
    await using through = await open(proxy.url);
    const cut = proxy.cut(/^INSERT INTO counters/, { when: 'after' });
    const value = await through.write('account:a', async (tx) => {
      try {
        return await counters.add(tx, 'a');
      } catch {
        throw new ProtocolError('invalid_state', 'all is lost');
      }
    });
    await cut;
    expect(value).toBe(1);
  });

  test('a read runs again, as one snapshot', async () => {
    await using proxy = await CuttingProxy.start(url);
    await using through = await open(proxy.url);
    const cuts = [
      proxy.cut(/^BEGIN.*READ ONLY/, { when: 'before' }),
      proxy.cut(/^SELECT 1 AS first/, { when: 'after' }),
      proxy.cut(/^SELECT 2 AS second/, { when: 'before' }),
    ];
    const rows = await through.read(async (tx) => [
      await tx.get('SELECT 1 AS first'),
      await tx.get('SELECT 2 AS second'),
    ]);
    await Promise.all(cuts);
    expect(rows).toEqual([{ first: 1 }, { second: 2 }]);
  });

  test('a read that asks nothing runs again as well', async () => {
    await using proxy = await CuttingProxy.start(url);
    await using through = await open(proxy.url);
    const cut = proxy.cut(/^BEGIN.*READ ONLY/, { when: 'before' });
    expect(await through.read(async () => 'nothing')).toBe('nothing');
    await cut;
  });

  test('a server that is shutting down: run again', async () => {
    let runs = 0;
    const value = await storage.write('account:a', async (tx) => {
      runs += 1;
      const value = await counters.add(tx, 'a');
      if (runs === 1) await tx.get('SELECT pg_terminate_backend(pg_backend_pid()) AS gone');
      return value;
    });
    expect([value, runs]).toEqual([1, 2]);
  });
});

describe('transactions that conflict', () => {
  test('a deadlock of two aggregates: both succeed after a retry', async () => {
    await storage.write('relay', async (tx) => {
      await counters.add(tx, 'a');
      await counters.add(tx, 'b');
    });
    const both = meeting(2);
    // One statement each: the two works share no aggregate, so each must lock the row that it reads.
    const add = (tx: Writer, name: string) =>
      tx.run('UPDATE counters SET value = value + 1 WHERE name = ?', name);
    const lockBoth = (first: string, second: string) => async (tx: Writer) => {
      await add(tx, first);
      await both();
      await add(tx, second);
    };
    await Promise.all([
      storage.write('account:1', lockBoth('a', 'b')),
      storage.write('account:2', lockBoth('b', 'a')),
    ]);
    expect(await counters.of(storage, 'a')).toBe(3);
    expect(await counters.of(storage, 'b')).toBe(3);
    // On a slow machine, the retry may meet the other write once more.
    expect(new Set(told.events)).toEqual(new Set(['conflicted']));
  });

  const raise = (code: string) =>
    `DO $$ BEGIN RAISE EXCEPTION 'made up' USING ERRCODE = '${code}'; END $$`;

  /** Long enough for a slow machine to connect, and to work. */
  const waits = { call: 1_000, lock: 5_000 };

  test.each(['40001', '40P01'])('a lasting %s: temporarily_unavailable', async (code) => {
    await using patient = await open(url, { observer: told, timeouts: waits });
    let runs = 0;
    const write = patient.write('account:a', async (tx) => {
      runs += 1;
      await tx.run(raise(code));
    });
    await expect(write).rejects.toMatchObject({ code: 'temporarily_unavailable' });
    expect(runs).toBeGreaterThan(1);
    // The time may end before the last retry has begun.
    expect([runs - 1, runs]).toContain(told.events.length);
  });

  test('a temporary conflict is hidden from the caller', async () => {
    let runs = 0;
    await storage.write('account:a', async (tx) => {
      runs += 1;
      if (runs < 4) await tx.run(raise('40001'));
    });
    expect(runs).toBe(4);
    expect(told.events).toEqual(['conflicted', 'conflicted', 'conflicted']);
  });

  test.each(['53100', '53200', '57014', '55P03'])('%s: no room or time now', async (code) => {
    await using patient = await open(url, { observer: told, timeouts: waits });
    const write = patient.write('account:a', (tx) => tx.run(raise(code)));
    await expect(write).rejects.toMatchObject({
      code: 'temporarily_unavailable',
      message: 'storage is too busy',
      data: undefined,
    });
    expect(told.events).toEqual([]);
  });

  test.each(['08006', '57P01', '57P02', '57P03', '57P05'])(
    '%s: the server cannot do it',
    async (code) => {
      await using patient = await open(url, { observer: told, timeouts: waits });
      const write = patient.write('account:a', (tx) => tx.run(raise(code)));
      await expect(write).rejects.toMatchObject({
        code: 'temporarily_unavailable',
        message: 'storage cannot be reached',
      });
      expect(told.events).toEqual(['lost']);
    },
  );
});

describe('a statement that fails', () => {
  const insert = (tx: Writer) => tx.run(`INSERT INTO counters (name, value) VALUES ('a', 1)`);

  test('because of a unique column: thrown as it is, not tried again, nothing stays', async () => {
    await storage.write('account:a', insert);
    let runs = 0;
    const write = storage.write('account:a', async (tx) => {
      runs += 1;
      await counters.add(tx, 'b');
      await insert(tx);
    });
    await expect(write).rejects.toMatchObject({ code: '23505' });
    await expect(write).rejects.not.toBeInstanceOf(ProtocolError);
    expect(runs).toBe(1);
    expect(await counters.of(storage, 'b')).toBe(0);
  });

  test('because it has too few values: not tried again', async () => {
    let runs = 0;
    const read = storage.read(async (tx) => {
      runs += 1;
      await tx.get('SELECT value FROM counters WHERE name = ?');
    });
    await expect(read).rejects.toMatchObject({ code: '08P01' });
    expect(runs).toBe(1);
  });

  test('and is swallowed by the work: the write is refused', async () => {
    await storage.write('account:a', insert);
    const write = storage.write('account:a', async (tx) => {
      await counters.add(tx, 'b');
      await insert(tx).catch(() => {});
    });
    await expect(write).rejects.toThrow('a write continued after a failed statement');
    expect(await counters.of(storage, 'b')).toBe(0);
  });

  test('and is not waited for by the work: COMMIT of it is no success', async () => {
    await storage.write('account:a', insert);
    const failures: Promise<unknown>[] = [];
    const write = storage.write('account:a', async (tx) => {
      await counters.add(tx, 'b');
      failures.push(insert(tx).catch(() => {}));
    });
    await expect(write).rejects.toMatchObject({ code: '23505' });
    await Promise.all(failures);
    expect(await counters.of(storage, 'b')).toBe(0);
  });

  test('in a transaction that cannot begin: statements sent after BEGIN have no effect', async () => {
    // A work's first statement leaves before the answer to BEGIN. Here BEGIN runs into a lock.
    await using patient = await open(url, { timeouts: { call: 300, lock: 250 } });
    const held = Promise.withResolvers<void>();
    const holding = storage.write('account:a', async (tx) => {
      await tx.get('SELECT 1 AS one');
      await held.promise;
    });
    await askUntil(
      url,
      `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1`,
      (rows) => rows.length > 0,
    );
    const write = patient.write('account:a', (tx) =>
      tx.run(`INSERT INTO counters (name, value) VALUES ('b', 1)`),
    );
    await expect(write).rejects.toMatchObject({ message: 'storage is too busy' });
    held.resolve();
    await holding;
    expect(await counters.of(storage, 'b')).toBe(0);
  });

  test('of BEGIN itself: the connection is of no use, another one is tried', async () => {
    await ask(url, `CREATE ROLE poor LOGIN PASSWORD 'poor'`);
    await ask(url, 'GRANT ALL ON SCHEMA public TO poor; GRANT ALL ON counters TO poor');
    await ask(url, 'GRANT ALL ON posthouse_commits TO poor');
    const to = new URL(url);
    to.username = to.password = 'poor';
    const told = new Told();
    await using poor = await open(to.href, { observer: told });
    await ask(url, 'REVOKE EXECUTE ON FUNCTION pg_advisory_xact_lock(bigint) FROM PUBLIC');
    const write = poor.write('account:a', increment('a'));
    await told.until('lost');
    await ask(url, 'GRANT EXECUTE ON FUNCTION pg_advisory_xact_lock(bigint) TO PUBLIC');
    expect(await write).toBe(1);
    expect(told.events).toEqual(['lost', 'restored']);
  });

  test('connections write nothing outside a transaction that says so', async () => {
    const read = storage.read((tx) => tx.get('SHOW default_transaction_read_only'));
    expect(await read).toEqual({ default_transaction_read_only: 'on' });
  });
});

describe('what the work throws', () => {
  test('undoes its writes and is thrown unchanged', async () => {
    const thrown = new ProtocolError('invalid_state', 'no');
    const write = storage.write('account:a', async (tx) => {
      await counters.add(tx, 'a');
      throw thrown;
    });
    await expect(write).rejects.toBe(thrown);
    expect(await counters.of(storage, 'a')).toBe(0);
    expect(told.events).toEqual([]);
  });

  test('before it asked anything, or from a read', async () => {
    const thrown = new ProtocolError('not_found', 'no');
    const throwing = async () => {
      throw thrown;
    };
    await expect(storage.write('account:a', throwing)).rejects.toBe(thrown);
    await expect(storage.read(throwing)).rejects.toBe(thrown);
  });

  test('in the hooks of tests, too', async () => {
    const thrown = new Error('made to fail');
    let isFailing = true;
    const fail = () => {
      if (isFailing) throw thrown;
    };
    await using failing = await open(url, { faults: { beforeCommit: fail } });
    await expect(failing.write('account:a', increment('a'))).rejects.toBe(thrown);
    isFailing = false;
    expect(await failing.write('account:a', increment('a'))).toBe(1);
  });

  test('a transaction is over when its work is', async () => {
    const kept: Writer[] = [];
    await storage.write('account:a', async (tx) => {
      kept.push(tx);
    });
    await expect(kept[0]?.get('SELECT 1 AS one')).rejects.toThrow('the transaction has ended');
  });
});

describe('a read', () => {
  test('is one snapshot', async () => {
    await storage.write('account:a', increment('a'));
    const values = await storage.read(async (tx) => {
      const sql = 'SELECT value FROM counters';
      const before = await tx.get(sql);
      await storage.write('account:a', increment('a'));
      return [before, await tx.get(sql)];
    });
    expect(values).toEqual([{ value: 1 }, { value: 1 }]);
    expect(await counters.of(storage, 'a')).toBe(2);
  });

  test('writes nothing, and is not tried again', async () => {
    let runs = 0;
    const read = storage.read(async (tx) => {
      runs += 1;
      await tx.get('DELETE FROM counters RETURNING name');
    });
    await expect(read).rejects.toMatchObject({ code: '25006' });
    expect(runs).toBe(1);
  });
});

describe('aggregates', () => {
  test('one at a time, also from two processes', async () => {
    await using second = await open(url);
    const writes = Array.from({ length: 200 }, (_, index) =>
      (index % 2 === 0 ? storage : second).write('account:a', increment('a')),
    );
    const values = await Promise.all(writes);
    expect(values.sort((a, b) => a - b)).toEqual(writes.map((_, index) => index + 1));
  });

  test('different ones at the same time, in one process and in two', async () => {
    await using second = await open(url);
    const all = meeting(4);
    // Each work waits until the others are in theirs.
    const writes = ['a', 'b', 'c', 'd'].map((name, index) =>
      (index % 2 === 0 ? storage : second).write(`account:${name}`, async (tx) => {
        await counters.add(tx, name);
        await all();
        return await counters.add(tx, name);
      }),
    );
    expect(await Promise.all(writes)).toEqual([2, 2, 2, 2]);
  });

  test('two in opposite order, from two processes: no deadlock, and kept apart', async () => {
    await using second = await open(url, { observer: told });
    const writes = Array.from({ length: 100 }, (_, index) =>
      index % 2 === 0
        ? storage.write(['account:a', 'account:b'], increment('both'))
        : second.write(['account:b', 'account:a'], increment('both')),
    );
    await Promise.all(writes);
    expect(await counters.of(storage, 'both')).toBe(100);
    expect(told.events).toEqual([]);
  });

  test('a busy one holds no connections that others need', async () => {
    await using narrow = await open(url, { connections: 2 });
    const held = Promise.withResolvers<void>();
    const busy = Array.from({ length: 10 }, () =>
      narrow.write('account:a', async (tx) => {
        await counters.add(tx, 'a');
        await held.promise;
      }),
    );
    expect(await narrow.write('account:b', increment('b'))).toBe(1);
    expect(await counters.of(narrow, 'b')).toBe(1);
    held.resolve();
    await Promise.all(busy);
  });

  test('a write of none is refused', async () => {
    await expect(storage.write([], async () => {})).rejects.toThrow('at least one aggregate');
  });
});
