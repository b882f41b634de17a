import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { LockMode } from '../../src/storage/postgres/process-lock.ts';
import type { Reader } from '../../src/storage/types.ts';
import { CuttingProxy } from '../support/cutting-proxy.ts';
import { TestPostgres } from '../support/postgres.ts';
import { ask, askUntil, open, Told } from '../support/postgres-engine.ts';

let server: TestPostgres;
let url: string;

beforeAll(async () => {
  server = await TestPostgres.start({ durable: false });
});
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(async () => {
  url = await server.createDatabase();
});

const start = (lockMode: LockMode, to = url) => open(to, { lockMode, timeouts: { lockRetry: 20 } });

/** Starts a process that must be refused: only for the lock, which stays taken, it does not wait long. */
const startRefused = (lockMode: LockMode) =>
  open(url, { lockMode, timeouts: { start: 200, lockRetry: 20 } });

const one = (tx: Reader) => tx.get('SELECT 1 AS one');

const alone = 'another relay process uses the database; several need `bus.nats`, each of them';
const together = 'a relay process without `bus.nats` uses the database';
const exclusive = 'a relay process uses the database; stop it first';
const moved = 'the database is being moved: wait until the move has ended';

describe('which processes may use a database together', () => {
  test.each([
    ['alone', 'alone', alone],
    ['together', 'alone', alone],
    ['alone', 'together', together],
    ['alone', 'exclusive', exclusive],
    ['together', 'exclusive', exclusive],
    ['exclusive', 'exclusive', exclusive],
    ['exclusive', 'alone', moved],
    ['exclusive', 'together', moved],
    ['alongside', 'exclusive', exclusive],
    ['exclusive', 'alongside', moved],
  ] as const)('%s, then %s: refused, and free when the first one ends', async (one, two, why) => {
    await using first = await start(one);
    const place = new URL(url);
    await expect(startRefused(two)).rejects.toThrow(
      `cannot use PostgreSQL at ${place.host}${place.pathname}: ${why}`,
    );
    await first[Symbol.asyncDispose]();
    await using second = await start(two);
    expect(second.hasLock).toBe(true);
  });

  test('together, then together', async () => {
    await using first = await start('together');
    await using second = await start('together');
    expect([first.hasLock, second.hasLock]).toEqual([true, true]);
  });

  test.each(['alone', 'together', 'alongside'] as const)(
    'alongside %s, in either order',
    async (other) => {
      for (const presences of [[other, 'alongside'] as const, ['alongside', other] as const]) {
        await using first = await start(presences[0]);
        await using second = await start(presences[1]);
        expect([first.hasLock, second.hasLock]).toEqual([true, true]);
      }
    },
  );

  test('alongside, in an empty database, creates no table', async () => {
    await using storage = await start('alongside');
    expect(await storage.read(one)).toEqual({ one: 1 });
    const tables = "SELECT count(*)::int AS count FROM pg_tables WHERE schemaname = 'public'";
    expect(await ask(url, tables)).toMatchObject([{ count: 0 }]);
  });

  test('many at the very same time, on an empty database', async () => {
    const all = await Promise.all(Array.from({ length: 8 }, () => start('together')));
    await Promise.all(all.map((storage) => storage[Symbol.asyncDispose]()));
    expect(all.map((storage) => storage.hasLock)).not.toContain(true);
  });

  test('other databases of the server are others', async () => {
    await using first = await start('alone');
    await using second = await start('exclusive', await server.createDatabase());
    expect([first.hasLock, second.hasLock]).toEqual([true, true]);
  });
});

test('exclusive is refused where a process has no connection open but its place', async () => {
  await using first = await start('alone');
  // As the pool does with connections that are idle for a while.
  await ask(
    url,
    `SELECT count(pg_terminate_backend(pid))::int AS count FROM pg_stat_activity
      WHERE application_name = 'posthouse' AND pid NOT IN
        (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = 2)
      AND datname = current_database()`,
  );
  await expect(startRefused('exclusive')).rejects.toThrow(exclusive);
  expect(first.hasLock).toBe(true);
});

test('no connection of a process is left alone with one that has the database exclusively', async () => {
  await using proxy = await CuttingProxy.start(url);
  const told = new Told();
  await using first = await open(proxy.url, {
    lockMode: 'together',
    timeouts: { lockRetry: 20 },
    observer: told,
  });
  proxy.refuse(true);
  proxy.cutAll();
  await using second = await open(url, { lockMode: 'exclusive', timeouts: { lockRetry: 20 } });
  proxy.refuse(false);
  await told.until('lockLost');
  expect(first.hasLock).toBe(false);
  await expect(first.read((tx) => tx.get('SELECT 1 AS one'))).rejects.toMatchObject({
    code: 'temporarily_unavailable',
    cause: { message: moved },
  });
  expect(await second.read((tx) => tx.get('SELECT 1 AS one'))).toEqual({ one: 1 });
});

const placeHolder = fileURLToPath(new URL('../support/place-holder.ts', import.meta.url));

test('the place of a killed process becomes free', async () => {
  const child = spawn(process.execPath, [placeHolder, url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  await expect(startRefused('alone')).rejects.toThrow(alone);
  child.kill('SIGKILL');
  await using next = await open(url, {
    lockMode: 'alone',
    timeouts: { start: 30_000, lockRetry: 20 },
  });
  expect(next.hasLock).toBe(true);
});

test('a place lost with its connection is asked for again', async () => {
  const told = new Told();
  await using first = await open(url, {
    lockMode: 'alone',
    observer: told,
    timeouts: { lockRetry: 20 },
  });
  await server.restart();
  const sql = `SELECT 1 AS one FROM pg_locks WHERE locktype = 'advisory' AND objid = 2 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
  await askUntil(url, sql, (rows) => rows.length === 1);
  await expect(startRefused('alone')).rejects.toThrow(alone);
  await expect.poll(() => first.hasLock).toBe(true);
  expect(told.events).not.toContain('lockLost');
});

test('a process whose place was taken meanwhile is told once, and gets it back later', async () => {
  await using proxy = await CuttingProxy.start(url);
  const told = new Told();
  await using first = await open(proxy.url, {
    lockMode: 'alone',
    observer: told,
    timeouts: { lockRetry: 20 },
  });
  proxy.refuse(true);
  proxy.cutAll();
  const second = await open(url, { lockMode: 'alone', timeouts: { lockRetry: 20 } });
  proxy.refuse(false);
  await told.until('lockLost');
  // It goes on asking, and says no more about it.
  const asked = proxy.statements.length;
  await expect.poll(() => proxy.statements.length).toBeGreaterThan(asked + 10);
  expect(told.events.filter((word) => word === 'lockLost')).toEqual(['lockLost']);
  expect(told.errors.at(-1)).toMatchObject({ message: alone });
  // Two that do not hear each other: one of them answers nothing.
  const refused = { code: 'temporarily_unavailable', cause: { message: alone } };
  await expect(first.read(one)).rejects.toMatchObject(refused);
  await expect(first.write('relay', one)).rejects.toMatchObject(refused);
  expect(await second.read(one)).toEqual({ one: 1 });
  await second[Symbol.asyncDispose]();
  await expect.poll(() => first.hasLock).toBe(true);
  expect(await first.read(one)).toEqual({ one: 1 });
});

test('a process that leaves while it asks for its place has none afterwards', async () => {
  await using proxy = await CuttingProxy.start(url);
  const first = await open(proxy.url, { lockMode: 'alone', timeouts: { lockRetry: 1 } });
  const struck = proxy.cut(/pg_try_advisory_lock/, { when: 'after' });
  proxy.cutAll();
  await struck;
  await first[Symbol.asyncDispose]();
  expect(first.hasLock).toBe(false);
  await using second = await open(url, { lockMode: 'exclusive', timeouts: { lockRetry: 20 } });
  expect(second.hasLock).toBe(true);
});
