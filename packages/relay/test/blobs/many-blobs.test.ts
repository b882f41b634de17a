import { expect, test } from 'vitest';
import { deleteEnded, insertBlob, markDue } from '../../src/blobs/store.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const relay = inProcessRelay();

test('0032: many blobs that end are counted in as few statements as two', async () => {
  const { storage } = relay.context;
  const blob = { account: 'ann', bytes: 1, counted: 5, keepUntil: 7 };
  const statementsOf = async (count: number) => {
    await storage.write('account:ann', async (tx) => {
      for (let at = 0; at < count; at += 1) await insertBlob(tx, { ...blob, name: `blob ${at}` });
      await insertBlob(tx, { ...blob, name: 'later', keepUntil: 8 });
    });
    let statements = 0;
    relay.faults.beforeStatement = () => {
      statements += 1;
    };
    await storage.write('account:ann', async (tx) => {
      const names = await markDue(tx, 'ann', { now: 7, limit: 100 });
      expect(names).toHaveLength(count);
      await deleteEnded(tx, 'ann', names);
    });
    delete relay.faults.beforeStatement;
    expect(await relay.rows('blobs')).toMatchObject([{ name: 'later', state: 'receiving' }]);
    expect(await relay.rows('blob_usage')).toEqual([{ account: 'ann', counted: 5 }]);
    expect(await relay.rows('blob_total')).toEqual([{ slot: 1, counted: 5 }]);
    await storage.write('account:ann', async (tx) => {
      await markDue(tx, 'ann', { now: 8, limit: 100 });
      await deleteEnded(tx, 'ann', ['later']);
    });
    expect(await relay.rows('blob_usage')).toEqual([]);
    return statements;
  };
  expect(await statementsOf(2)).toBe(await statementsOf(9));
});
