import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { SqliteConnection } from '../../src/storage/sqlite/connection.ts';
import { Outage } from '../../src/storage/sqlite/failures.ts';
import { SqliteWriter } from '../../src/storage/sqlite/writer.ts';
import type { SqlValue, SyncWriter, Upcoming } from '../../src/storage/types.ts';
import { WriteListeners } from '../../src/storage/write-listeners.ts';
import { temporaryFolder } from '../support/folder.ts';

/** A connection that refuses its first rollback, as a failing disk may. */
class Stubborn extends SqliteConnection {
  refusals = 1;

  override run(sql: string, values: readonly SqlValue[]): number {
    if (sql === 'ROLLBACK' && this.refusals > 0) {
      this.refusals -= 1;
      throw new Error('disk I/O error');
    }
    return super.run(sql, values);
  }
}

test('a rollback that fails fails its batch and the next one, and then writes go on', async () => {
  using folder = temporaryFolder();
  const connection = new Stubborn(join(folder.path, 'x.sqlite'), { readOnly: false });
  connection.execute('CREATE TABLE t (n BIGINT)');
  let broken = true;
  const beforeCommit = () => {
    if (broken) throw new Error('no commit');
  };
  const writer = new SqliteWriter(connection, {
    faults: { beforeCommit },
    outage: new Outage(undefined),
    listeners: new WriteListeners(),
    lockTimeout: 0,
  });
  const write = () => writer.write((tx) => tx.run('INSERT INTO t (n) VALUES (?)', 1));

  await expect(write()).rejects.toThrow('no commit');
  broken = false;
  await expect(write()).rejects.toThrow('transaction');
  await expect(write()).resolves.toBe(1);
  expect(connection.all('SELECT n FROM t', [])).toHaveLength(1);

  await writer.close();
  connection.close();
});

describe('a batch, while writes are about to come', () => {
  /** A writer on a new table; `sizes` are the rows of each commit. */
  function writerOf(upcoming: Upcoming) {
    const parts = new DisposableStack();
    const { path } = parts.use(temporaryFolder());
    const connection = new SqliteConnection(join(path, 'x.sqlite'), { readOnly: false });
    parts.defer(() => connection.close());
    connection.execute('CREATE TABLE t (n BIGINT)');
    const sizes: number[] = [];
    let rows = 0;
    const writer = new SqliteWriter(connection, {
      faults: {
        beforeCommit: () => {
          sizes.push(rows);
          rows = 0;
        },
      },
      outage: new Outage(undefined),
      listeners: new WriteListeners(),
      lockTimeout: 0,
      upcoming,
    });
    const append = async (count: number) => {
      const insert = (tx: SyncWriter) => {
        tx.run('INSERT INTO t (n) VALUES (?)', 1);
        rows += 1;
      };
      await Promise.all(Array.from({ length: count }, () => writer.append(insert)));
    };
    return { append, sizes, [Symbol.dispose]: () => parts.dispose() };
  }

  /** No time passes for a batch. */
  const stopTime = () => vi.spyOn(performance, 'now').mockReturnValue(0);

  test('0024: with eight writes it stays open for them', async () => {
    using _time = stopTime();
    let late: Promise<void> | undefined;
    using writer = writerOf(() => {
      if (late !== undefined) return undefined;
      const { promise, resolve } = Promise.withResolvers<void>();
      late = promise;
      // When the batch waits.
      queueMicrotask(() => writer.append(1).then(resolve));
      return new Promise(() => {});
    });
    await writer.append(8);
    await late;
    expect(writer.sizes).toEqual([9]);
  });

  test('0024: with seven it waits for none', async () => {
    using _time = stopTime();
    let asked = 0;
    using writer = writerOf(() => {
      asked += 1;
      return undefined;
    });
    await writer.append(7);
    expect([writer.sizes, asked]).toEqual([[7], 0]);
    await writer.append(8);
    expect(asked).toBeGreaterThan(0);
  });

  test('0024: a promise that outlasts several batches gets one reaction', async () => {
    const never = new Promise<void>(() => {});
    const reactions = vi.spyOn(never, 'then');
    using writer = writerOf(() => never);
    for (const count of [8, 9, 8]) await writer.append(count);
    expect(reactions).toHaveBeenCalledTimes(1);
  });

  test('0024: it commits although they do not come, or are always about to', async () => {
    using writer = writerOf(() => new Promise(() => {}));
    await writer.append(8);
    expect(writer.sizes).toEqual([8]);
    using other = writerOf(() => Promise.resolve());
    await other.append(8);
    expect(other.sizes).toEqual([8]);
  });
});
