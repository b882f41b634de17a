/** What `storage/types.ts` promises, whatever the engine. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type {
  AppendKind,
  SqlValue,
  Storage,
  StorageFaults,
  WriteListener,
  Writer,
} from '../../src/storage/types.ts';
import { RelayData } from '../support/engine.ts';

let data: RelayData;
let storage: Storage;
let faults: StorageFaults;

beforeEach(async () => {
  data = await RelayData.empty();
  faults = {};
  storage = await data.open(faults);
  await storage.write('relay', (tx) =>
    tx.run('CREATE TABLE things (name TEXT PRIMARY KEY, number BIGINT NOT NULL)'),
  );
});
afterEach(async () => {
  await storage[Symbol.asyncDispose]();
  await data[Symbol.asyncDispose]();
});

const insert =
  (name: string, number: SqlValue = name.length) =>
  (tx: Writer) =>
    tx.run('INSERT INTO things (name, number) VALUES (?, ?)', name, number);
const names = async (order = 'name') =>
  (
    await storage.read((tx) =>
      tx.all<{ name: string }>(`SELECT name FROM things ORDER BY ${order}`),
    )
  ).map(({ name }) => name);
const numberOf = (name: string) => async (tx: Pick<Writer, 'get'>) =>
  (await tx.get<{ number: number }>('SELECT number FROM things WHERE name = ?', name))?.number ?? 0;

/** Reads, decides, writes: wrong as soon as another one does so at the same time. */
const increment = (name: string) => async (tx: Writer) => {
  const number = await numberOf(name)(tx);
  await tx.run('UPDATE things SET number = ? WHERE name = ?', number + 1, name);
};

describe('a write', () => {
  test('is there for every reader once it resolved', async () => {
    await storage.write('a', insert('one'));
    expect(await names()).toEqual(['one']);
  });

  test('sees what it did itself and reads rows back through RETURNING', async () => {
    const row = await storage.write('a', async (tx) => {
      await insert('one')(tx);
      expect(await tx.get('SELECT number FROM things')).toEqual({ number: 3 });
      return tx.get('UPDATE things SET number = 7 WHERE name = ? RETURNING name, number', 'one');
    });
    expect({ ...row }).toEqual({ name: 'one', number: 7 });
  });

  test('that throws leaves nothing and does not touch its neighbours', async () => {
    const outcomes = await Promise.allSettled([
      storage.write('a', insert('one')),
      storage.write('b', async (tx) => {
        await insert('two')(tx);
        throw new Error('second thoughts');
      }),
      storage.write('c', insert('three')),
      storage.write('a', insert('one')),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
      'rejected',
    ]);
    expect(await names()).toEqual(['one', 'three']);
  });

  test('throws what its work throws', async () => {
    const thoughts = new Error('second thoughts');
    const write = storage.write('a', () => Promise.reject(thoughts));
    await expect(write).rejects.toBe(thoughts);
  });

  test('whose statement fails leaves nothing, whatever the work makes of it', async () => {
    await storage.write('a', insert('one'));
    const write = storage.write('a', async (tx) => {
      await insert('two')(tx);
      await insert('one')(tx).catch(() => {});
    });
    await expect(write).rejects.toThrow('a write continued after a failed statement');
    expect(await names()).toEqual(['one']);
  });

  test('with a statement that storage refuses is undone, others are not', async () => {
    faults.beforeStatement = (sql) => {
      if (sql.startsWith('UPDATE')) throw new Error('no');
    };
    const failing = storage.write('a', async (tx) => {
      await insert('one')(tx);
      await tx.run('UPDATE things SET number = 1');
    });
    const fine = storage.write('a', insert('two'));
    await expect(failing).rejects.toThrow('no');
    await fine;
    expect(await names()).toEqual(['two']);
  });

  test('that cannot commit leaves nothing, and the next one is a new one', async () => {
    faults.beforeCommit = () => {
      throw new Error('disk on fire');
    };
    const writes = ['one', 'two'].map((name) => storage.write(name, insert(name)));
    const outcomes = await Promise.allSettled(writes);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    delete faults.beforeCommit;
    expect(await names()).toEqual([]);
    await storage.write('one', insert('three'));
    expect(await names()).toEqual(['three']);
  });

  test('cannot be gone on with after its end', async () => {
    let kept: Writer | undefined;
    await storage.write('a', async (tx) => {
      kept = tx;
    });
    await expect(kept?.get('SELECT 1')).rejects.toThrow('the transaction has ended');
  });
});

describe('listeners of writes', () => {
  let seen: unknown[];
  const listener: WriteListener = {
    begins: (aggregates) => seen.push('begins', aggregates),
    ended: (aggregates) => seen.push('ended', aggregates),
    changed: () => seen.push('changed'),
  };

  beforeEach(() => {
    seen = [];
  });

  test('are told the aggregates before the work begins and when it has ended', async () => {
    storage.watch(listener);
    await storage.write(['a', 'b'], async (tx) => {
      seen.push('work');
      await insert('one')(tx);
    });
    expect(seen).toEqual(['begins', ['a', 'b'], 'work', 'ended', ['a', 'b']]);
  });

  test('are told of a write that failed too', async () => {
    storage.watch(listener);
    const failing = storage.write('a', async () => {
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(seen).toEqual(['begins', ['a'], 'ended', ['a']]);
  });
});

describe('an append', () => {
  /** Inserts a name, unless it is there. */
  const kind: AppendKind<string, number> = {
    name: 'thing',
    aggregates: (name) => [name],
    apply: (tx, name) =>
      tx.get('SELECT 1 AS one FROM things WHERE name = ?', name) === undefined
        ? tx.run('INSERT INTO things (name, number) VALUES (?, ?)', name, name.length)
        : undefined,
    batch: {
      bytes: (name) => name.length,
      async write(tx, names) {
        const rows = await tx.all<{ name: string }>(
          `INSERT INTO things (name, number) SELECT name, length(name) FROM unnest(?::text[]) AS name
            ON CONFLICT DO NOTHING RETURNING name`,
          names,
        );
        const stored = new Set(rows.map((row) => row.name));
        return names.map((name) => (stored.delete(name) ? 1 : undefined));
      },
    },
  };

  test('is there for every reader once it resolved; another of the same name is declined', async () => {
    const names = ['one', 'two', 'two', 'three'];
    const outputs = await Promise.all(names.map((name) => storage.append(kind, name)));
    expect(outputs.filter((output) => output === 1)).toHaveLength(3);
    expect(outputs[1] ?? outputs[2]).toBe(1);
    for (const name of names) expect(await storage.read(numberOf(name))).toBe(name.length);
  });

  test('that is declined writes nothing', async () => {
    await storage.write('one', insert('one', 7));
    expect(await storage.append(kind, 'one')).toBe(undefined);
    expect(await storage.read(numberOf('one'))).toBe(7);
  });

  test('is told to no listener', async () => {
    const seen: unknown[] = [];
    const tell = () => seen.push('told');
    storage.watch({ begins: tell, ended: tell, changed: tell });
    await storage.append(kind, 'two');
    expect(seen).toEqual([]);
  });
});

describe('writes of the same aggregate', () => {
  test('happen one after another', async () => {
    await storage.write('a', insert('count', 0));
    await Promise.all(Array.from({ length: 200 }, () => storage.write('a', increment('count'))));
    expect(await storage.read(numberOf('count'))).toBe(200);
  });

  test('keep their order', async () => {
    await Promise.all(
      Array.from({ length: 50 }, (_, number) =>
        storage.write('a', async (tx) => {
          const { found } = (await tx.get<{ found: number }>(
            'SELECT COUNT(*) AS found FROM things',
          )) ?? { found: -1 };
          await insert(`at ${number}`, found)(tx);
        }),
      ),
    );
    expect(await names('number')).toEqual(Array.from({ length: 50 }, (_, n) => `at ${n}`));
  });

  test('of two at once, named in either order: none is lost, none waits for ever', async () => {
    await storage.write('a', insert('a', 0));
    await storage.write('b', insert('b', 0));
    const orders = [['a', 'b'], ['b', 'a'], ['a'], ['b'], ['a', 'a']];
    await Promise.all(
      Array.from({ length: 40 }, () => orders)
        .flat()
        .map((aggregates) =>
          storage.write(aggregates, async (tx) => {
            for (const name of new Set(aggregates)) await increment(name)(tx);
          }),
        ),
    );
    expect(await storage.read(numberOf('a'))).toBe(160);
    expect(await storage.read(numberOf('b'))).toBe(120);
  });

  test('a write after a failed one succeeds', async () => {
    const failing = storage.write('a', () => Promise.reject(new Error('no')));
    const next = storage.write('a', insert('one'));
    await expect(failing).rejects.toThrow('no');
    await expect(next).resolves.toBe(1);
  });
});

describe('the SQL that all engines have', () => {
  test('a run says how many rows it changed', async () => {
    const counts = await storage.write('a', async (tx) => [
      await tx.run('INSERT INTO things VALUES (?, 1), (?, 2)', 'one', 'two'),
      await tx.run('UPDATE things SET number = 3 WHERE number > ?', 0),
      await tx.run('DELETE FROM things WHERE name = ?', 'nothing'),
    ]);
    expect(counts).toEqual([2, 2, 0]);
  });

  test('ON CONFLICT does nothing, or updates with what was excluded', async () => {
    const insertOr = 'INSERT INTO things (name, number) VALUES (?, ?) ON CONFLICT (name) DO';
    const counts = await storage.write('a', async (tx) => [
      await tx.run(`${insertOr} NOTHING`, 'one', 1),
      await tx.run(`${insertOr} NOTHING`, 'one', 2),
      (await tx.all(`${insertOr} NOTHING RETURNING name`, 'one', 3)).length,
    ]);
    expect(counts).toEqual([1, 0, 0]);
    expect(await storage.read(numberOf('one'))).toBe(1);
    const row = await storage.write('a', (tx) =>
      tx.get(`${insertOr} UPDATE SET number = excluded.number RETURNING number`, 'one', 4),
    );
    expect({ ...row }).toEqual({ number: 4 });
  });

  test('REFERENCES and CHECK hold', async () => {
    await storage.write('a', (tx) =>
      tx.run(`CREATE TABLE parts (
        thing TEXT NOT NULL REFERENCES things (name),
        count BIGINT NOT NULL CHECK (count > 0)
      )`),
    );
    const part = (thing: string, count: number) =>
      storage.write('a', (tx) => tx.run('INSERT INTO parts VALUES (?, ?)', thing, count));
    await expect(part('nothing', 1)).rejects.toThrow(/foreign key/i);
    await storage.write('a', insert('one'));
    await expect(part('one', 0)).rejects.toThrow(/check/i);
    await expect(part('one', 1)).resolves.toBe(1);
  });

  test('counts and sums are numbers, conditions 0 or 1, nothing is null', async () => {
    const sql = `SELECT COUNT(*) AS count, SUM(number) AS sum, MAX(number) > 2 AS large,
      MIN(number) > 2 AS small FROM things`;
    expect({ ...(await storage.read((tx) => tx.get(sql))) }).toEqual({
      count: 0,
      sum: null,
      large: null,
      small: null,
    });
    await storage.write('a', (tx) => tx.run("INSERT INTO things VALUES ('a', 2), ('b', 3)"));
    expect({ ...(await storage.read((tx) => tx.get(sql))) }).toEqual({
      count: 2,
      sum: 5,
      large: 1,
      small: 0,
    });
  });

  test('row values, LIMIT and common table expressions', async () => {
    await storage.write('a', async (tx) => {
      for (const [name, number] of Object.entries({ a: 1, b: 1, c: 2, d: 2, e: 3 })) {
        await insert(name, number)(tx);
      }
    });
    const rows = await storage.read((tx) =>
      tx.all<{ name: string }>(
        `WITH later AS (SELECT name, number FROM things WHERE (number, name) > (?, ?))
         SELECT name FROM later ORDER BY number, name LIMIT ?`,
        1,
        'b',
        2,
      ),
    );
    expect(rows.map(({ name }) => name)).toEqual(['c', 'd']);
  });
});

describe('values', () => {
  test('texts are ordered and compared by their bytes', async () => {
    const texts = ['a', 'B', 'ä', 'é', 'e\u0301', 'Z', 'a b', 'ab', '-a', '\uffff', '😀', ''];
    const bytes = (text: string) => Buffer.from(text);
    const ordered = texts.toSorted((a, b) => Buffer.compare(bytes(a), bytes(b)));
    await storage.write('a', async (tx) => {
      for (const text of texts) await insert(text)(tx);
    });
    expect(await names()).toEqual(ordered);
    expect(await names('name DESC')).toEqual(ordered.toReversed());
    for (const [index, text] of ordered.entries()) {
      const found = await storage.read((tx) =>
        tx.all<{ name: string }>('SELECT name FROM things WHERE name > ? ORDER BY name', text),
      );
      expect(found.map(({ name }) => name)).toEqual(ordered.slice(index + 1));
    }
  });

  test.each([2 ** 53 - 1, -(2 ** 53 - 1), 2 ** 31, 0])('the number %d comes back', async (n) => {
    await storage.write('a', insert('x', n));
    expect(await storage.read(numberOf('x'))).toBe(n);
  });

  test.each([2 ** 53, -(2 ** 53), 0.5, Number.NaN])('the number %d is not stored', async (n) => {
    await expect(storage.write('a', insert('x', n))).rejects.toThrow(
      'only safe integers are stored',
    );
    expect(await names()).toEqual([]);
  });

  test('an integer past 2^53 in the database is refused, not rounded', async () => {
    await storage.write('a', (tx) => tx.run("INSERT INTO things VALUES ('x', 9007199254740993)"));
    await expect(storage.read(numberOf('x'))).rejects.toThrow(RangeError);
  });

  test.each(['\ud800', 'a\u0000b'])('the text %j is not stored', async (text) => {
    await expect(storage.write('a', insert(text, 1))).rejects.toThrow(
      'only well-formed texts without U+0000 are stored',
    );
    expect(await names()).toEqual([]);
  });
});

describe('a read', () => {
  test('sees one snapshot with all its queries', async () => {
    await storage.write('a', insert('one'));
    const seen = await storage.read(async (tx) => {
      const before = await tx.all('SELECT name FROM things');
      await storage.write('a', insert('two'));
      const after = await tx.all('SELECT name FROM things');
      return [before.length, after.length];
    });
    expect(seen).toEqual([1, 1]);
    expect(await names()).toEqual(['one', 'two']);
  });

  test('sees nothing of a write before its commit', async () => {
    await storage.write('a', async (tx) => {
      await insert('one')(tx);
      expect(await names()).toEqual([]);
    });
    expect(await names()).toEqual(['one']);
  });

  test('cannot write', async () => {
    await expect(
      storage.read((tx) => tx.get("INSERT INTO things VALUES ('x', 1) RETURNING name")),
    ).rejects.toThrow(/read-?only/);
  });

  test('waits for its turn where there are more than connections, and all finish', async () => {
    await storage.write('a', insert('one'));
    const counts = await Promise.all(
      Array.from({ length: 40 }, () =>
        storage.read(async (tx) => {
          await new Promise((resolve) => setImmediate(resolve));
          return (await tx.all('SELECT name FROM things')).length;
        }),
      ),
    );
    expect(counts).toEqual(Array.from({ length: 40 }, () => 1));
  });

  test('that throws gives its connection back', async () => {
    for (let count = 0; count < 20; count += 1) {
      await expect(storage.read((tx) => tx.get('SELECT nonsense'))).rejects.toThrow(/nonsense/);
    }
    expect(await names()).toEqual([]);
  });
});

test('the catalogue names every column of every table, and the keys in their order', async () => {
  await storage.write('relay', (tx) =>
    tx.run('CREATE TABLE ends (b BIGINT NOT NULL, a TEXT NOT NULL, c TEXT, PRIMARY KEY (a, b))'),
  );
  const rows = await storage.read((tx) => tx.all(storage.catalogueSql));
  expect(rows.map((row) => Object.values(row))).toEqual([
    ['ends', 'b', 2],
    ['ends', 'a', 1],
    ['ends', 'c', 0],
    ['things', 'name', 1],
    ['things', 'number', 0],
  ]);
});

describe('closing', () => {
  test('leaves everything to the next one', async () => {
    await storage.write('a', insert('one'));
    await storage[Symbol.asyncDispose]();
    storage = await data.open();
    expect(await names()).toEqual(['one']);
  });

  test('commits what waits and refuses what comes', async () => {
    const waiting = storage.write('a', insert('one'));
    const closing = storage[Symbol.asyncDispose]();
    await expect(storage.write('a', insert('two'))).rejects.toThrow('storage is closed');
    await waiting;
    await closing;
    await expect(storage.read((tx) => tx.get('SELECT 1'))).rejects.toThrow('storage is closed');
    storage = await data.open();
    expect(await names()).toEqual(['one']);
  });

  test('twice is closing once', async () => {
    await Promise.all([storage[Symbol.asyncDispose](), storage[Symbol.asyncDispose]()]);
    await storage[Symbol.asyncDispose]();
  });
});
