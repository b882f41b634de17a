import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SqliteConnection } from '../../src/storage/sqlite/connection.ts';
import { Outage } from '../../src/storage/sqlite/failures.ts';
import { SqliteWriter } from '../../src/storage/sqlite/writer.ts';
import type { SqlValue } from '../../src/storage/types.ts';
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
