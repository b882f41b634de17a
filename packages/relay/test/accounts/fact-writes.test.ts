/**
 * Decision 0024: facts of an account are forgotten by the account that a write names. Every in-process
 * relay of the tests has its writes checked for that; here are writes that break the rule.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { AggregateKey, AppendKind, Storage } from '../../src/storage/types.ts';
import { engine, RelayData } from '../support/engine.ts';

let data: RelayData;
let storage: Storage;

beforeEach(async () => {
  data = await RelayData.withSchema();
  storage = await data.open();
});
afterEach(() => storage[Symbol.asyncDispose]());

const account = 'neo:1:a';
const inserts = {
  account_routes: `INSERT INTO account_routes
      (account, revision, content, relay_id, expires_at, held_until, conflict, route)
    VALUES (?, 1, '', '', 9, 9, 0, '')`,
  device_states: "INSERT INTO device_states (account, revision, state) VALUES (?, 1, '')",
  devices: `INSERT INTO devices
      (account, device_id, not_before, expires_at, certificate_id, certificate)
    VALUES (?, '', 0, 9, '', '')`,
  profiles: `INSERT INTO profiles (account, updated_at, public_discovery, profile, certificate)
    VALUES (?, 0, 1, '', '')`,
};
const own: AggregateKey = `account:${account}`;

const run = (sql: string, named: AggregateKey, keepsFacts = false) =>
  storage.write(named, (tx) => tx.run(sql, account), { keepsFacts });
/** The database is given back, and tells what was broken. */
const end = async () => {
  await storage[Symbol.asyncDispose]();
  await data[Symbol.asyncDispose]();
};

describe.each(Object.entries(inserts))('a write of %s', (table, insert) => {
  const erase = `DELETE FROM ${table} WHERE account = ?`;

  test('that names its account may insert and delete', async () => {
    expect(await run(insert, own)).toBe(1);
    expect(await run(erase, own)).toBe(1);
    expect(await run(erase, 'relay')).toBe(0);
    await end();
  });

  test.each([
    ['names no account', 'relay', false],
    ['names another account', 'account:neo:1:b', false],
    ['says that it keeps facts', own, true],
  ])('that %s is rejected and leaves nothing, and fails the test', async (_, named, keepsFacts) => {
    await expect(run(insert, named, keepsFacts)).rejects.toThrow('which it does not name');
    expect(await run(insert, own)).toBe(1);
    await expect(run(erase, named, keepsFacts)).rejects.toThrow('which it does not name');
    expect(await run(erase, own)).toBe(1);
    await expect(end()).rejects.toThrow(`changes facts of ${account}`);
  });
});

describe('an update of a route', () => {
  const update = (assignment: string) =>
    `UPDATE account_routes SET ${assignment} WHERE account = ?`;

  test.each([
    ['of a column that facts are read from is rejected', 'relay_id', false],
    ['of another column is not', 'checked_at', true],
  ])('%s', async (_, column, isKept) => {
    await run(inserts.account_routes, own);
    const updated = run(update(`${column} = ${column}`), 'relay');
    if (isKept) expect(await updated).toBe(1);
    else await expect(updated).rejects.toThrow('which it does not name');
    if (isKept) await end();
    else await expect(end()).rejects.toThrow();
  });

  test('may end it: facts from before say the same from then on', async () => {
    await run(inserts.account_routes, own);
    expect(await run(update("route = '', held_until = 0"), 'relay')).toBe(1);
    await end();
  });
});

test.runIf(engine === 'sqlite')('an append that changes facts is rejected', async () => {
  const kind: AppendKind<string, number> = {
    name: 'profile',
    aggregates: (name) => [`account:${name}`],
    apply: (tx, name) => tx.run(inserts.profiles, name),
    batch: undefined,
  };
  await expect(storage.append(kind, account)).rejects.toThrow('an append changes facts');
  await expect(end()).rejects.toThrow('an append changes facts');
});
