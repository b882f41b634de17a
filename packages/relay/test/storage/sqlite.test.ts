import { cpSync, existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { openSqlite, openSqliteAlongside } from '../../src/storage/sqlite/storage.ts';
import type { Writer } from '../../src/storage/types.ts';
import { temporaryFolder } from '../support/folder.ts';
import { insertThing, sqliteThings, thingNames } from '../support/sqlite-things.ts';

const sqlite = sqliteThings();
afterEach(() => void vi.restoreAllMocks());

describe('writes', () => {
  test('writes waiting together share one commit', async () => {
    let commits = 0;
    sqlite.faults.beforeCommit = () => {
      commits += 1;
    };
    await Promise.all(
      Array.from({ length: 100 }, (_, n) => sqlite.storage.write('a', insertThing(`n${n}`))),
    );
    expect(commits).toBe(1);
    expect(await sqlite.names()).toHaveLength(100);
  });

  test('a batch is bounded and the rest follows', async () => {
    let commits = 0;
    sqlite.faults.beforeCommit = () => {
      commits += 1;
    };
    await Promise.all(
      Array.from({ length: 600 }, (_, n) => sqlite.storage.write('a', insertThing(`n${n}`))),
    );
    expect(commits).toBeGreaterThanOrEqual(3);
    expect(await sqlite.names()).toHaveLength(600);
  });

  test('no write succeeds before the commit', async () => {
    const heard: string[] = [];
    sqlite.faults.beforeCommit = () => heard.push('commit');
    await Promise.all(
      ['one', 'two'].map((key) =>
        sqlite.storage.write('a', insertThing(key)).then(() => heard.push(key)),
      ),
    );
    expect(heard).toEqual(['commit', 'one', 'two']);
  });

  test('a commit that fails fails every write of its batch and stores none', async () => {
    sqlite.faults.beforeCommit = () => {
      throw new Error('disk on fire');
    };
    const outcomes = await Promise.allSettled([
      sqlite.storage.write('a', insertThing('one')),
      sqlite.storage.write('b', insertThing('two')),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    delete sqlite.faults.beforeCommit;
    expect(await sqlite.names()).toEqual([]);
    await sqlite.storage.write('a', insertThing('three'));
    expect(await sqlite.names()).toEqual(['three']);
  });

  test('a write that waits for anything else is refused and undone', async () => {
    const something = Promise.withResolvers<void>();
    const slow = sqlite.storage.write('a', async (tx) => {
      await insertThing('one')(tx);
      await something.promise;
      await insertThing('two')(tx);
    });
    const fine = sqlite.storage.write('b', insertThing('three'));
    await expect(slow).rejects.toThrow('a write awaited more than its transaction');
    something.resolve();
    await fine;
    expect(await sqlite.names()).toEqual(['three']);
  });

  test('a transaction with many statements pauses, and shows nothing to others meanwhile', async () => {
    const seen: number[] = [];
    let isOver = false;
    const look = async (): Promise<void> => {
      if (isOver) return;
      seen.push((await sqlite.names()).length);
      await new Promise((resolve) => setImmediate(resolve));
      await look();
    };
    const looking = look();
    const many = Array.from({ length: 2_000 }, (_, index) => `item ${index}`);
    const written = sqlite.storage.write('a', async (tx) => {
      for (const name of many) await insertThing(name)(tx);
    });
    const later = sqlite.storage.write('b', insertThing('later'));
    await written;
    isOver = true;
    await Promise.all([looking, later]);
    expect(seen.length).toBeGreaterThan(4);
    expect(new Set(seen.slice(0, -1))).toEqual(new Set([0]));
    expect((await sqlite.names()).length).toBe(2_001);
  });

  test('statements at once pause together', async () => {
    vi.spyOn(performance, 'now').mockReturnValue(0);
    let statements = 0;
    sqlite.faults.beforeStatement = () => {
      statements += 1;
    };
    const nextTurn = Promise.withResolvers<number>();
    const written = sqlite.storage.write('a', async (tx) => {
      setImmediate(() => nextTurn.resolve(statements));
      await Promise.all(
        Array.from({ length: 300 }, async (_, index) => {
          await insertThing(`first ${index}`)(tx);
          await insertThing(`second ${index}`)(tx);
        }),
      );
    });
    expect(await nextTurn.promise).toBe(400);
    await written;
    expect(statements).toBe(600);
  });

  test.each([
    ['a write', (items: string[]) => [items]],
    ['short writes', (items: string[]) => items.map((item) => [item])],
  ])('%s of several milliseconds: other work runs after each', async (_, parts) => {
    // Each statement takes 0.4 ms.
    let now = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => now);
    let statements = 0;
    sqlite.faults.beforeStatement = () => {
      statements += 1;
      now += 0.4;
    };
    const items = ['1', '2', '3', '4', '5', '6'];
    const write = async (tx: Writer, part: readonly string[]) => {
      for (const item of part) await insertThing(item)(tx);
    };
    const seen = new Set<number>();
    const look = () => {
      seen.add(statements);
      turn = setImmediate(look);
    };
    let turn = setImmediate(look);
    await Promise.all(
      parts(items).map((part) => sqlite.storage.write('a', (tx) => write(tx, part))),
    );
    clearImmediate(turn);
    expect(seen).toEqual(new Set([0, 3, 6]));
    expect(await sqlite.names()).toEqual(items);
  });

  test('after SQLite undid a write by itself, none of its statements is stored alone', async () => {
    await sqlite.storage.write('a', insertThing('there'));
    const lost = sqlite.storage.write('a', async (tx) => {
      const undone = tx.run("INSERT OR ROLLBACK INTO things (name) VALUES ('there')");
      await Promise.all([undone, insertThing('alone')(tx), insertThing('too')(tx)]);
    });
    await expect(lost).rejects.toThrow('UNIQUE');
    expect(await sqlite.names()).toEqual(['there']);
    await sqlite.storage.write('a', insertThing('later'));
    expect(await sqlite.names()).toEqual(['later', 'there']);
  });

  test('a write that waits for anything else after a pause is refused and undone', async () => {
    const something = Promise.withResolvers<void>();
    const slow = sqlite.storage.write('a', async (tx) => {
      for (let index = 0; index < 1_000; index += 1) await insertThing(`item ${index}`)(tx);
      await something.promise;
    });
    await expect(slow).rejects.toThrow('a write awaited more than its transaction');
    something.resolve();
    expect(await sqlite.names()).toEqual([]);
  });

  test('more writes than may wait are refused at once', async () => {
    const writes = Array.from({ length: 20_001 }, () => sqlite.storage.write('a', async () => 1));
    await expect(writes.at(-1)).rejects.toMatchObject({ code: 'temporarily_unavailable' });
    await Promise.all(writes.slice(0, -1));
  });
});

describe('the folder', () => {
  test('a second relay is told that the folder is in use', () => {
    expect(() => openSqlite(sqlite.path)).toThrow(
      `${sqlite.path} is in use by another relay process`,
    );
  });

  test('a command alongside a relay reads and writes, and does not lock the folder', async () => {
    await sqlite.storage.write('a', insertThing('relay'));
    const alongside = openSqliteAlongside(sqlite.path);
    await alongside.write('a', insertThing('command'));
    expect(await thingNames(alongside)).toEqual(['command', 'relay']);
    await alongside[Symbol.asyncDispose]();
    expect(existsSync(join(sqlite.path, 'relay.sqlite-wal'))).toBe(true);
    await sqlite.storage.write('a', insertThing('relay again'));
    expect(await sqlite.names()).toEqual(['command', 'relay', 'relay again']);
    expect(() => openSqlite(sqlite.path)).toThrow('is in use by another relay process');
  });

  test('a command where no relay runs keeps none from starting', async () => {
    await sqlite.storage[Symbol.asyncDispose]();
    const alongside = openSqliteAlongside(sqlite.path);
    sqlite.storage = openSqlite(sqlite.path);
    await sqlite.storage.write('a', insertThing('relay'));
    expect(await thingNames(alongside)).toEqual(['relay']);
    await alongside[Symbol.asyncDispose]();
    expect(await sqlite.names()).toEqual(['relay']);
  });

  test('a command makes no database, and leaves no journal of one that is at rest', async () => {
    using other = temporaryFolder();
    expect(() => openSqliteAlongside(other.path)).toThrow(
      `there is no relay.sqlite in ${other.path}`,
    );
    expect(readdirSync(other.path)).toEqual([]);
    await sqlite.storage[Symbol.asyncDispose]();
    const before = readdirSync(sqlite.path);
    const alongside = openSqliteAlongside(sqlite.path);
    await alongside.write('a', insertThing('command'));
    await alongside[Symbol.asyncDispose]();
    expect(readdirSync(sqlite.path)).toEqual(before);
  });

  test('a lock file that is broken is not taken for another relay', async () => {
    using other = temporaryFolder();
    writeFileSync(join(other.path, 'lock'), 'this is no database, and long enough to tell');
    expect(() => openSqlite(other.path)).toThrow('file is not a database');
  });

  test('a commit is on the disk when it returns', async () => {
    const settings = await sqlite.storage.write('a', async (tx) => [
      await tx.get('PRAGMA synchronous'),
      await tx.get('PRAGMA journal_mode'),
    ]);
    const full = 2;
    expect(settings).toEqual([{ synchronous: full }, { journal_mode: 'wal' }]);
  });

  test('only the owner may read the files', async () => {
    await sqlite.storage.write('a', insertThing('one'));
    for (const file of ['relay.sqlite', 'relay.sqlite-wal', 'relay.sqlite-shm', 'lock']) {
      expect(statSync(join(sqlite.path, file)).mode & 0o777).toBe(0o600);
    }
  });

  test('what was answered survives a process that ends without closing', async () => {
    await sqlite.storage.write('a', insertThing('one'));
    // After a crash, the files are as in this copy.
    using crashed = temporaryFolder();
    cpSync(sqlite.path, crashed.path, { recursive: true });
    const database = new DatabaseSync(join(crashed.path, 'relay.sqlite'));
    expect(database.prepare('SELECT count(*) AS n FROM things').get()?.n).toBe(1);
    database.close();
  });
});
