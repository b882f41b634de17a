/** Appends on PostgreSQL: what decision record 0027 says of batches, locks and failures. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { PostgresStorage } from '../../src/storage/postgres/storage.ts';
import { CuttingProxy } from '../support/cutting-proxy.ts';
import { TestPostgres } from '../support/postgres.ts';
import { ask, askUntil, open, Told } from '../support/postgres-engine.ts';
import { batches, makeThings, type Thing, things, writeThings } from './things.ts';

let server: TestPostgres;
let url: string;
let storage: PostgresStorage;
let told: Told;
/** Points of writes that were reached. */
let points: string[];

beforeAll(async () => {
  server = await TestPostgres.start({ durable: true });
  url = await server.createDatabase();
  await using first = await open(url);
  await first.write('relay', makeThings);
});
afterAll(() => server[Symbol.asyncDispose]());

beforeEach(async () => {
  await ask(url, 'TRUNCATE things, heads');
  told = new Told();
  points = [];
  const faults = { reach: (point: string) => void points.push(point) };
  storage = await open(url, { observer: told, faults });
  points = [];
  return () => storage[Symbol.asyncDispose]();
});

const add = (name: string, of = name, through = storage) => through.append(things, { name, of });
const names = async () =>
  (await ask<{ name: string }>(url, 'SELECT name FROM things ORDER BY name')).map(
    (row) => row.name,
  );
const headOf = async (of: string) =>
  (await ask<{ head: string }>(url, 'SELECT head FROM heads WHERE aggregate = $1', of))[0]?.head;
const several = (count: number, of?: string) =>
  Array.from({ length: count }, (_, index) => add(`n${String(index).padStart(4, '0')}`, of));
const count = (point: string) => points.filter((reached) => reached === point).length;

/** Holds a write of an aggregate open until `release` is called. */
async function held(aggregate: string, through = storage) {
  const begun = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const done = through.write(aggregate, async (tx) => {
    await tx.run('UPDATE things SET place = place WHERE FALSE');
    begun.resolve();
    await released.promise;
  });
  await begun.promise;
  return async () => {
    released.resolve();
    await done;
  };
}

/** Appends of this kind wait in their batch, after they have written, until `release` is called. */
function heldInBatch() {
  const begun = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const kind: typeof things = {
    ...things,
    batch: {
      bytes: () => 1,
      async write(tx, inputs) {
        const outputs = await writeThings(tx, inputs);
        begun.resolve();
        await released.promise;
        return outputs;
      },
    },
  };
  return { kind, begun: begun.promise, release: () => released.resolve() };
}

describe('0027: appends that wait are one transaction', () => {
  test('of one turn, up to 128; each gets its own output', async () => {
    const places = await Promise.all(several(128, 'a'));
    expect(new Set(places).size).toBe(128);
    expect([count('queued'), count('begun'), count('committed'), count('answer')]).toEqual([
      ...[128, 1, 1, 1],
    ]);
    points = [];
    await Promise.all(Array.from({ length: 129 }, (_, index) => add(`m${index}`)));
    expect(count('begun')).toBe(2);
  });

  test('of 256 KiB of text; one with more is a batch of its own', async () => {
    const big = (name: string, bytes: number) => storage.append(things, { name, of: name, bytes });
    await Promise.all([big('a', 131_072), big('b', 131_072)]);
    expect(count('begun')).toBe(1);
    points = [];
    await Promise.all([big('c', 131_072), big('d', 131_073)]);
    expect(count('begun')).toBe(2);
    points = [];
    expect(await Promise.all([big('e', 1), big('f', 9_000_000), big('g', 1)])).toEqual([1, 1, 1]);
    expect(count('begun')).toBe(3);
  });

  test('those that arrive while a batch is under way are the next batch', async () => {
    batches.length = 0;
    const { kind, begun, release } = heldInBatch();
    const first = storage.append(kind, { name: 'first', of: 'a' });
    await begun;
    const rest = several(5);
    release();
    expect(await first).toBe(1);
    expect(await Promise.all(rest)).toEqual([1, 1, 1, 1, 1]);
    expect(batches).toEqual([1, 5]);
  });

  test('a name that is twice in a batch is stored once', async () => {
    const places = await Promise.all([add('a', 'x'), add('a', 'x'), add('b', 'x')]);
    expect(places.filter((place) => place !== undefined)).toHaveLength(2);
    expect(await names()).toEqual(['a', 'b']);
    expect(await headOf('x')).toBe('2');
  });

  test('kinds of all sorts share it', async () => {
    const other = { ...things, name: 'another' };
    const both = await Promise.all([
      add('a', 'x'),
      storage.append(other, { name: 'b', of: 'x' }),
      add('c', 'x'),
    ]);
    expect(both.toSorted()).toEqual([1, 2, 3]);
    expect(count('begun')).toBe(1);
  });

  test('a kind without statements for it is declined', async () => {
    expect([things, { ...things, batch: undefined }].map((of) => storage.appends(of))).toEqual([
      ...[true, false],
    ]);
    expect(await storage.append({ ...things, batch: undefined }, { name: 'a', of: 'a' })).toBe(
      undefined,
    );
    expect(points).toEqual([]);
  });
});

describe('0027: one input does not harm the others of its batch', () => {
  test('one that the statements refuse is rejected alone', async () => {
    const inputs = several(20);
    const bad = add('bad\u0000');
    await expect(bad).rejects.toThrow('well-formed texts');
    expect(await Promise.all(inputs)).toEqual(inputs.map(() => 1));
    expect(await names()).toHaveLength(20);
  });

  test('one for which all is undone is declined alone', async () => {
    const picky: typeof things = {
      ...things,
      batch: {
        bytes: () => 1,
        async write(tx, inputs) {
          const outputs = await writeThings(tx, inputs);
          return inputs.some(({ name }) => name === 'odd') ? undefined : outputs;
        },
      },
    };
    const inputs = ['a', 'b', 'odd', 'c', 'd'].map((name) =>
      storage.append(picky, { name, of: name }),
    );
    expect(await Promise.all(inputs)).toEqual([1, 1, undefined, 1, 1]);
    expect(await names()).toEqual(['a', 'b', 'c', 'd']);
  });

  test('listeners are notified of aggregates that a batch reports as changed, not of declined appends', async () => {
    const seen: unknown[] = [];
    storage.watch({
      begins: (aggregates) => seen.push(aggregates),
      ended: () => seen.push('ended'),
      changed: () => {},
    });
    expect([await add('a'), await add('a')]).toEqual([1, undefined]);
    expect(seen).toEqual([]);
    const finding: typeof things = {
      ...things,
      batch: {
        bytes: () => 1,
        async write(_tx, inputs, changed) {
          changed('account:b');
          return inputs.map(() => undefined);
        },
      },
    };
    expect(await storage.append(finding, { name: 'c', of: 'c' })).toBeUndefined();
    expect(seen).toEqual([['account:b'], 'ended']);
  });
});

describe('0027: the locks of a batch', () => {
  test('a write of the aggregate delays its appends and no others', async () => {
    const release = await held('account:a');
    const waiting = add('a');
    expect(await add('b')).toBe(1);
    expect(await names()).toEqual(['b']);
    await release();
    expect(await waiting).toBe(1);
  });

  test('the statements see what the write before them committed', async () => {
    await using other = await open(url);
    const begun = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    const writing = other.write('account:x', async (tx) => {
      await tx.run(`INSERT INTO things (name, place) VALUES ('a', 7)`);
      begun.resolve();
      await released.promise;
    });
    await begun.promise;
    const same = add('a', 'x');
    expect(await add('b', 'y')).toBe(1);
    released.resolve();
    await writing;
    expect(await same).toBe(undefined);
    expect(await headOf('x')).toBe(undefined);
  });

  test('an append is declined if the write lasts for 32 batches; the aggregate is not changed', async () => {
    await using other = await open(url);
    const release = await held('account:a', other);
    expect(await add('a', 'a')).toBe(undefined);
    expect(count('begun')).toBe(32);
    expect(await names()).toEqual([]);
    await release();
  });

  test('batches of two processes share the locks of an aggregate', async () => {
    await using other = await open(url);
    const { kind, begun, release } = heldInBatch();
    const first = storage.append(kind, { name: 'first', of: 'a' });
    await begun;
    const empty: typeof things = { ...things, batch: { bytes: () => 1, write: async () => [7] } };
    expect(await other.append(empty, { name: 'second', of: 'a' })).toBe(7);
    release();
    expect(await first).toBe(1);
  });

  test('a write of the aggregate waits for the batch, in this process and in others', async () => {
    await using other = await open(url);
    const { kind, begun, release } = heldInBatch();
    const append = storage.append(kind, { name: 'a', of: 'a' });
    await begun;
    const read = (through: PostgresStorage) =>
      through.write('account:a', (tx) => tx.all('SELECT name FROM things'));
    const reads = Promise.all([read(storage), read(other)]);
    await askUntil(
      url,
      `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`,
      (rows) => rows.length === 2,
    );
    release();
    await append;
    expect(await reads).toEqual([[{ name: 'a' }], [{ name: 'a' }]]);
  });

  test('many appends and writes of few aggregates by two processes: each is applied once', async () => {
    await using other = await open(url);
    const through = [storage, other] as const;
    const calls = Array.from({ length: 400 }, async (_, index) => {
      const engine = through[index % 2] as PostgresStorage;
      const of = `a${index % 3}`;
      const name = `n${index % 350}`;
      const place = await add(name, of, engine);
      if (place !== undefined) return place;
      return await engine.write(`account:${of}`, (tx) => generalWay(tx, { name, of }));
    });
    await Promise.all(calls);
    expect(await names()).toHaveLength(350);
    const heads = await ask<{ sum: string }>(url, 'SELECT sum(head) AS sum FROM heads');
    expect(heads[0]?.sum).toBe('350');
  });
});

/** What a caller does when its append was declined. */
async function generalWay(
  tx: Parameters<Parameters<PostgresStorage['write']>[1]>[0],
  { name, of }: Thing,
): Promise<number | undefined> {
  if ((await tx.get('SELECT 1 AS one FROM things WHERE name = ?', name)) !== undefined) return;
  await tx.run('INSERT INTO things (name, place) VALUES (?, 0)', name);
  const row = await tx.get<{ head: number }>(
    `INSERT INTO heads (aggregate, head) VALUES (?, 1)
      ON CONFLICT (aggregate) DO UPDATE SET head = heads.head + 1 RETURNING head`,
    of,
  );
  return row?.head;
}

describe('0027: failures', () => {
  test.each([
    ['BEGIN', /^BEGIN.*READ WRITE/, 'before'],
    ['BEGIN', /^BEGIN.*READ WRITE/, 'after'],
    ['a statement', /^INSERT INTO heads/, 'before'],
    ['a statement', /^INSERT INTO heads/, 'after'],
    ['COMMIT', /^COMMIT$/, 'before'],
    ['COMMIT', /^COMMIT$/, 'after'],
  ] as const)(
    'the connection breaks at %s (%s, %s): each is applied once',
    async (_, statement, when) => {
      await using proxy = await CuttingProxy.start(url);
      await using through = await open(proxy.url, { observer: told });
      await add('zero', 'a', through);
      const cut = proxy.cut(statement, { when });
      const places = await Promise.all(['x', 'y', 'z'].map((name) => add(name, 'a', through)));
      await cut;
      expect(places.toSorted()).toEqual([2, 3, 4]);
      expect(await headOf('a')).toBe('4');
      expect(told.events).toEqual(['lost', 'restored']);
    },
  );

  test('an unknown outcome is temporarily_unavailable, and reported once it is found', async () => {
    await using proxy = await CuttingProxy.start(url);
    const timeouts = { outcome: 300, outcomeRetry: 20 };
    await using through = await open(proxy.url, { observer: told, timeouts });
    await add('zero', 'a', through);
    const struck = proxy.cut(/^COMMIT$/, {
      when: 'after',
      also() {
        proxy.refuse(true);
        proxy.cutAll();
      },
    });
    const both = [add('x', 'a', through), add('y', 'b', through)];
    for (const append of both) {
      await expect(append).rejects.toMatchObject({
        code: 'temporarily_unavailable',
        message: 'the outcome of the commit is unknown: check, then try again',
      });
    }
    await struck;
    proxy.refuse(false);
    await told.untilUnannounced(1);
    expect(told.unannouncedKeys).toEqual([['account:a', 'account:b']]);
    expect(await names()).toEqual(['x', 'y', 'zero']);
  });

  test('batches that deadlock are run again', async () => {
    await using other = await open(url, { observer: told });
    await Promise.all([add('one', 'a'), add('two', 'b')]);
    let come = 0;
    const both = Promise.withResolvers<void>();
    const crossing: typeof things = {
      ...things,
      batch: {
        bytes: () => 1,
        async write(tx, [input]) {
          const order = input?.name === 'x' ? ['a', 'b'] : ['b', 'a'];
          for (const aggregate of order) {
            await tx.run('UPDATE heads SET head = head + 1 WHERE aggregate = ?', aggregate);
            come += 1;
            if (come === 2) both.resolve();
            await both.promise;
          }
          return [1];
        },
      },
    };
    const through = [storage, other] as const;
    const done = ['x', 'y'].map((name, index) =>
      (through[index] as PostgresStorage).append(crossing, { name, of: name }),
    );
    expect(await Promise.all(done)).toEqual([1, 1]);
    expect([await headOf('a'), await headOf('b')]).toEqual(['3', '3']);
    expect(new Set(told.events)).toEqual(new Set(['conflicted']));
  });

  test('a declined append reports no aggregate: its general way does', async () => {
    await add('a');
    await add('a');
    const release = await held('account:b');
    const blocked = add('b');
    await add('c');
    await release();
    await blocked;
    expect(told.unannouncedKeys.flat()).not.toContain('account:a');
    expect(told.unannouncedKeys.flat()).not.toContain('account:c');
  });

  test('of more than the limit of waiting calls, the last are temporarily_unavailable', async () => {
    await using narrow = await open(url, { maxWaiting: 3 });
    const appends = ['a', 'b', 'c', 'd'].map((name) => add(name, name, narrow));
    const settled = await Promise.allSettled(appends);
    expect(settled.map(({ status }) => status)).toEqual([
      ...['fulfilled', 'fulfilled', 'fulfilled', 'rejected'],
    ]);
    expect(settled[3]).toMatchObject({ reason: { code: 'temporarily_unavailable' } });
  });

  test('closing waits for those under way and refuses others', async () => {
    const closing = await open(url);
    const appends = ['a', 'b', 'c'].map((name) => add(name, name, closing));
    const closed = closing[Symbol.asyncDispose]();
    await expect(add('d', 'd', closing)).rejects.toThrow('storage is closed');
    expect(await Promise.all(appends)).toEqual([1, 1, 1]);
    await closed;
  });

  test('calls that hold every connection of the pool do not delay an append', async () => {
    await using narrow = await open(url, { connections: 1 });
    const release = await held('account:a', narrow);
    expect(await add('b', 'b', narrow)).toBe(1);
    await release();
  });
});
