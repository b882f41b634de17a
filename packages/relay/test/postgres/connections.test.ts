import { ProtocolError } from '@posthouse/protocol';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { PostgresStorage } from '../../src/storage/postgres/storage.ts';
import type { Writer } from '../../src/storage/types.ts';
import { CuttingProxy } from '../support/cutting-proxy.ts';
import { TestPostgres } from '../support/postgres.ts';
import {
  again,
  ask,
  askUntil,
  counters,
  impatient,
  open,
  Told,
} from '../support/postgres-engine.ts';

let server: TestPostgres;
let url: string;

/** Whatever would have ended a relay's process. */
const uncaught: unknown[] = [];
const catchIt = (error: unknown) => uncaught.push(error);

beforeAll(async () => {
  server = await TestPostgres.start({ durable: false });
  process.on('uncaughtExceptionMonitor', catchIt);
  process.on('unhandledRejection', catchIt);
});
afterAll(async () => {
  process.off('uncaughtExceptionMonitor', catchIt);
  process.off('unhandledRejection', catchIt);
  await server[Symbol.asyncDispose]();
});
beforeEach(async () => {
  url = await server.createDatabase();
  return () => expect(uncaught).toEqual([]);
});

const add = (name: string) => (tx: Writer) => counters.add(tx, name);
const one = (tx: { get: Writer['get'] }) => tx.get('SELECT 1 AS one');

/** The sessions of relay processes at the database. */
const sessionsSql = `SELECT state FROM pg_stat_activity
  WHERE application_name = 'posthouse' AND datname = current_database()`;

/**
 * Holds a connection of a storage in a write until `held` resolves. An attempt that does not begin in time is repeated.
 * @returns the end of the write
 */
async function holdConnection(
  storage: PostgresStorage,
  held: Promise<void>,
): Promise<{ readonly ended: Promise<unknown> }> {
  return await again(async () => {
    const begun = Promise.withResolvers<void>();
    const ended = storage.write(`account:${crypto.randomUUID()}`, async (tx) => {
      await one(tx);
      begun.resolve();
      await held;
    });
    await Promise.race([begun.promise, ended]);
    return { ended };
  });
}

describe('when every connection is at work', () => {
  test('a call that waits for one too long is refused', async () => {
    await using storage = await again(() => open(url, { connections: 2, timeouts: impatient }));
    const held = Promise.withResolvers<void>();
    const first = await holdConnection(storage, held.promise);
    const second = await holdConnection(storage, held.promise);
    const busy = { code: 'temporarily_unavailable', message: 'storage is too busy' };
    await expect(storage.write('account:c', one)).rejects.toMatchObject(busy);
    await expect(storage.read(one)).rejects.toMatchObject(busy);
    held.resolve();
    await Promise.all([first.ended, second.ended]);
  });

  test('a connection that becomes free is used by a call that waits for one', async () => {
    await using storage = await open(url, { connections: 1 });
    const held = Promise.withResolvers<void>();
    const { ended } = await holdConnection(storage, held.promise);
    const waiting = storage.read(one);
    held.resolve();
    await ended;
    expect(await waiting).toEqual({ one: 1 });
  });

  test('the number of waiting calls is limited', async () => {
    const held = Promise.withResolvers<void>();
    await using storage = await open(url, { maxWaiting: 3 });
    const calls = Array.from({ length: 3 }, () =>
      storage.write('account:a', async (tx) => {
        await one(tx);
        await held.promise;
      }),
    );
    await expect(storage.read(one)).rejects.toMatchObject({
      code: 'temporarily_unavailable',
      message: 'too many calls wait for storage: try again later',
    });
    held.resolve();
    await Promise.all(calls);
    expect(await storage.read(one)).toEqual({ one: 1 });
  });

  test('a server that has no room for more is busy, not lost', async () => {
    await ask(url, `CREATE ROLE narrow LOGIN PASSWORD 'narrow' CONNECTION LIMIT 3`);
    await ask(url, 'GRANT ALL ON SCHEMA public TO narrow');
    const to = new URL(url);
    to.username = to.password = 'narrow';
    const told = new Told();
    // What a server without room answers is answered at once: only retries must end soon.
    await using storage = await open(to.href, { timeouts: { call: 300 }, observer: told });
    const held = Promise.withResolvers<void>();
    // One of the three is that of the process lock.
    const first = await holdConnection(storage, held.promise);
    const second = await holdConnection(storage, held.promise);
    await expect(storage.write('c', one)).rejects.toMatchObject({ message: 'storage is too busy' });
    held.resolve();
    await Promise.all([first.ended, second.ended]);
    expect(told.events).toEqual([]);
  });

  test('many writes of one aggregate: those that time out are refused', async () => {
    await using proxy = await CuttingProxy.start(url);
    const timeouts = { ...impatient, answer: 200 };
    await using storage = await again(() => open(proxy.url, { timeouts }));
    proxy.fallSilent();
    // Each that meets the silence waits for an answer; later ones have waited already.
    const calls = Array.from({ length: 50 }, () => storage.write('account:a', one));
    const outcomes = await Promise.allSettled(calls);
    const codes = outcomes.map((outcome) =>
      outcome.status === 'rejected' ? (outcome.reason as ProtocolError).code : '',
    );
    expect(new Set(codes)).toEqual(new Set(['temporarily_unavailable']));
    const met = outcomes.filter(
      (outcome) =>
        outcome.status === 'rejected' &&
        (outcome.reason as ProtocolError).message === 'storage cannot be reached',
    );
    expect(met.length).toBeLessThan(5);
  });
});

test('after thousands of failures of every kind, no connection is leaked', async () => {
  await using proxy = await CuttingProxy.start(url);
  await using storage = await open(proxy.url, { connections: 5, timeouts: { call: 20_000 } });
  await counters.make(storage);
  const failures: ((tx: Writer) => Promise<unknown>)[] = [
    add('ok'),
    () => Promise.reject(new ProtocolError('forbidden', 'no')),
    (tx) => tx.run('INSERT INTO counters (name, value) VALUES (NULL, 1)'),
    (tx) => tx.get('SELECT 9007199254740993 AS unsafe'),
    (tx) => tx.run('INSERT INTO none VALUES (1)').catch(() => {}),
    (tx) => tx.run('INSERT INTO counters (name, value) VALUES (?, ?)', 'a', 0.5),
    () => Promise.resolve(),
  ];
  let applied = 0;
  const calls = Array.from({ length: 3_000 }, async (_, index) => {
    const work = failures[index % failures.length] as (tx: Writer) => Promise<unknown>;
    const call =
      index % 3 === 0 ? storage.read(work as never) : storage.write(`a:${index % 40}`, work);
    const isApplied = index % failures.length === 0 && index % 3 !== 0;
    await call.then(
      () => {
        if (isApplied) applied += 1;
      },
      () => {},
    );
    if (index % 500 === 0) proxy.cutAll();
  });
  await Promise.all(calls);
  expect(applied).toBeGreaterThan(0);
  // The place and the pool.
  await askUntil<{ state: string }>(
    url,
    sessionsSql,
    (rows) => rows.length <= 6 && rows.every(({ state }) => state === 'idle'),
  );
  await Promise.all(Array.from({ length: 5 }, () => storage.read(one)));
});

describe('the end', () => {
  test('waits for calls in progress, refuses later ones, ends every connection', async () => {
    const storage = await open(url);
    await counters.make(storage);
    const held = Promise.withResolvers<void>();
    const writing = storage.write('account:a', async (tx) => {
      await counters.add(tx, 'a');
      await held.promise;
    });
    const later = storage.write('account:a', add('a'));
    const ending = storage[Symbol.asyncDispose]();
    await expect(storage.read(one)).rejects.toThrow('storage is closed');
    await expect(storage.write('account:b', add('b'))).rejects.toThrow('storage is closed');
    held.resolve();
    await ending;
    await writing;
    expect(await later).toBe(2);
    await askUntil(url, sessionsSql, (rows) => rows.length === 0);
    await storage[Symbol.asyncDispose]();
  });

  test.each(['is silent', 'refuses'] as const)('comes while the server %s', async (how) => {
    await using proxy = await CuttingProxy.start(url);
    const timeouts = { ...impatient, answer: 300 };
    const storage = await again(() => open(proxy.url, { timeouts }));
    await again(() => Promise.all([storage.read(one), storage.read(one)]));
    if (how === 'refuses') {
      proxy.refuse(true);
      proxy.cutAll();
    } else proxy.fallSilent();
    const call = storage.write('account:a', one);
    const ending = storage[Symbol.asyncDispose]();
    await expect(call).rejects.toMatchObject({ code: 'temporarily_unavailable' });
    // It ends only when the sockets are closed, and only the storage itself closes the silent ones.
    await ending;
  });
});

describe('nothing that happens to a connection ends the process', () => {
  test.each([
    ['an idle one is ended by the server', `SELECT pg_terminate_backend(pid)::int AS gone`],
    ['a statement is cancelled while none runs', `SELECT pg_cancel_backend(pid)::int AS gone`],
  ])('%s', async (_, sql) => {
    await using storage = await open(url);
    await Promise.all(Array.from({ length: 5 }, () => storage.read(one)));
    await ask(
      url,
      `${sql} FROM pg_stat_activity
        WHERE application_name = 'posthouse' AND datname = current_database()`,
    );
    expect(await storage.read(one)).toEqual({ one: 1 });
  });

  test('all of them break, again and again, idle or at work or just connecting', async () => {
    await using proxy = await CuttingProxy.start(url);
    await using storage = await open(proxy.url, { timeouts: { call: 20_000, lockRetry: 1 } });
    for (let round = 0; round < 20; round += 1) {
      const calls = Array.from({ length: 10 }, () => storage.read(one));
      for (let step = 0; step < round; step += 1) await new Promise(setImmediate);
      proxy.cutAll();
      await Promise.all(calls);
      proxy.cutAll();
    }
    proxy.refuse(true);
    proxy.cutAll();
    await using other = await open(url);
    expect(await other.read(one)).toEqual({ one: 1 });
    proxy.refuse(false);
    expect(await storage.read(one)).toEqual({ one: 1 });
  });

  test('the server ends in the middle of a work that waits for something else', async () => {
    await using storage = await open(url);
    const held = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    let runs = 0;
    const call = storage.write('account:a', async (tx) => {
      runs += 1;
      await one(tx);
      begun.resolve();
      if (runs === 1) await held.promise;
      return await one(tx);
    });
    await begun.promise;
    await server.restart();
    held.resolve();
    expect(await call).toEqual({ one: 1 });
    expect(runs).toBe(2);
  });
});
