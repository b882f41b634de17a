/** `account delete` killed at each point of its writes, and next to a running relay: nothing is left half. */
import { fileURLToPath } from 'node:url';
import { accountSigner } from '@posthouse/protocol';
import { pino } from 'pino';
import { afterEach, expect, test, vi } from 'vitest';
import { Relay } from '../../src/index.ts';
import { type Storage, writePoints } from '../../src/storage/types.ts';
import { killAll, posthouse } from '../support/command.ts';
import { RelayData } from '../support/engine.ts';
import { network } from '../support/modules.ts';
import { patience } from '../support/patience.ts';

const program = fileURLToPath(new URL('killed-deletion.ts', import.meta.url));
const account = accountSigner(network, new Uint8Array(32).fill(1)).account;
const other = accountSigner(network, new Uint8Array(32).fill(2)).account;
/** More than two batches of a deletion. */
const records = 1_200;
const later = 9_999_999_999;

afterEach(killAll);

const options = { dev: true, listen: '127.0.0.1:0' } as const;
const start = (data: RelayData) =>
  Relay.start({ ...options, ...data.config }, { log: pino({ level: 'silent' }) });

/** Makes a relay's data with two accounts that have the same. */
async function furnish(): Promise<RelayData> {
  const data = await RelayData.withSchema();
  await using relay = await start(data);
  const { storage, identity } = relay.context;
  await storage.write('test', async (tx) => {
    for (const one of [account, other]) {
      const { relayId } = identity;
      await tx.run("INSERT INTO device_states VALUES (?, 3, '{}')", one);
      await tx.run(
        `INSERT INTO devices (account, device_id, not_before, expires_at, certificate_id, certificate)
          VALUES (?, ?, 1, ?, 'c', '{}')`,
        ...[one, `dev ${one}`, later],
      );
      await tx.run("INSERT INTO profiles VALUES (?, 1, 1, '{}', '{}')", one);
      await tx.run(
        `INSERT INTO account_routes
            (account, revision, content, relay_id, expires_at, conflict, route, checked_at)
          VALUES (?, 2, '', ?, ?, 0, '{}', ?)`,
        ...[one, relayId, later, later],
      );
      await tx.run(
        "INSERT INTO auth_sessions VALUES (?, ?, 'account', NULL, 'o', ?, 1)",
        ...[`token ${one}`, one, later],
      );
      await tx.run('INSERT INTO timeline_heads VALUES (?, ?)', one, records);
      await tx.run(
        `INSERT INTO timeline_records
          WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${records})
            SELECT CAST(? AS TEXT), i, 1, CAST(? AS BIGINT), 'e', 'c', 1, '' FROM n`,
        ...[one, later],
      );
    }
  });
  return data;
}

/** By which an account is at home here, and what is left of its timeline. */
const homeTables = ['device_states', 'devices', 'profiles', 'auth_sessions'];

async function stateOf(storage: Storage, one: string) {
  return await storage.read(async (tx) => {
    const counts: number[] = [];
    for (const table of homeTables) {
      const sql = `SELECT count(*) AS n FROM ${table} WHERE account = ?`;
      counts.push((await tx.get<{ n: number }>(sql, one))?.n ?? 0);
    }
    const route = await tx.get<{ route: string }>(
      'SELECT route FROM account_routes WHERE account = ?',
      one,
    );
    const left = await tx.get<{ n: number }>(
      'SELECT count(*) AS n FROM timeline_records WHERE account = ? AND keep_until = ?',
      ...[one, later],
    );
    return { home: [...counts, route?.route === '' ? 0 : 1], records: left?.n };
  });
}

const whole = [1, 1, 1, 1, 1];
const gone = [0, 0, 0, 0, 0];

/** Sessions end with the first write, which keeps the account out. */
const withoutSession = [1, 1, 1, 0, 1];

test.each(writePoints)(
  'killed at "%s" of any write, the relay starts, the account is here or gone, and a repeat ends it',
  async (point) => {
    for (let pass = 1, isOver = false; !isOver; pass += 1) {
      await using data = await furnish();
      const config = JSON.stringify({ ...data.config, bus: { nats: '' } });
      const { ended, output } = posthouse([config, account, point, String(pass)], {}, { program });
      const status = await ended;
      isOver = status === 0;
      const stood = `killed at ${point} ${pass}: ${status} ${output.errors}`;
      if (!isOver) expect(status, stood).toBe('SIGKILL');
      await using relay = await start(data);
      const { storage } = relay.context;
      const { home } = await stateOf(storage, account);
      expect([whole, withoutSession, gone], stood).toContainEqual(home);
      if (isOver) expect([pass > 4, home]).toEqual([true, gone]);
      const repeat = posthouse(
        ['account', 'delete', account, '--yes', '--data', data.path],
        data.environment,
      );
      const isGone = home[0] === 0;
      expect(await repeat.ended, stood).toBe(isGone ? 1 : 0);
      if (isGone) expect(repeat.output.errors).toContain('there is nothing to delete');
      expect(await stateOf(storage, account), stood).toEqual({ home: gone, records: 0 });
      expect(await stateOf(storage, other), stood).toEqual({ home: whole, records });
    }
  },
  600_000,
);

test('killed next to a running relay, it holds nothing up, and a repeat ends it', async () => {
  await using data = await furnish();
  await using relay = await start(data);
  const { storage } = relay.context;
  const args = ['account', 'delete', account, '--yes', '--data', data.path];
  const { child, ended } = posthouse(args, data.environment);
  const isBlocked = async () => {
    const row = await storage.read((tx) =>
      tx.get("SELECT id FROM blocks WHERE kind = 'account' AND id = ?", account),
    );
    return row !== undefined;
  };
  await vi.waitUntil(isBlocked, { ...patience, interval: 1 });
  child.kill('SIGKILL');
  await ended;
  await storage.write(`account:${account}`, (tx) =>
    tx.run('UPDATE timeline_heads SET head = head + 1 WHERE account = ?', account),
  );
  const { home } = await stateOf(storage, account);
  expect([withoutSession, gone]).toContainEqual(home);
  const status = await posthouse(args, data.environment).ended;
  expect(status).toBe(home[0] === 0 ? 1 : 0);
  expect(await stateOf(storage, account)).toEqual({ home: gone, records: 0 });
  expect(await stateOf(storage, other)).toEqual({ home: whole, records });
});
