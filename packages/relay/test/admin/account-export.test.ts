/** `account export`: what is in the file, and what is not (the verb; `account-export-file.test.ts` has the command). */
import type { JsonObject } from '@posthouse/protocol/json';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { exportAccount } from '../../src/admin/export-account.ts';
import { accountTables, tablesOfNoAccount } from '../../src/admin/inventory/account-tables.ts';
import { readTables } from '../../src/storage/move/rows.ts';
import type { Person } from '../fixtures/person.ts';
import { InProcessRelay } from '../support/in-process-relay.ts';
import { furnish, othersText } from './furnished-account.ts';

let relay: InProcessRelay;
let ann: Person;
let ben: Person;
let cem: Person;

beforeAll(async () => {
  relay = await InProcessRelay.start();
  ann = await relay.register('ann', ['phone', 'laptop']);
  ben = await relay.register('ben');
  cem = await relay.register('cem');
  await furnish(relay, { ann, ben, cem });
});
afterAll(() => relay[Symbol.asyncDispose]());

interface Line {
  readonly kind: string;
  readonly row: JsonObject;
}

async function exported(person = ann) {
  const chunks: JsonObject[][] = [];
  const { clock, context } = relay;
  const { storage } = context;
  const emit = async (items: readonly JsonObject[]) => void chunks.push([...items]);
  const result = await exportAccount({ storage, clock, emit }, person.account);
  const [head, ...lines] = chunks.flat();
  return { result, head, end: lines.pop(), lines: lines as unknown as Line[], chunks };
}

test('each table of the database is in the inventory, once', async () => {
  const tables = (await readTables(relay.context.storage)).map(({ name }) => name);
  const listed = [...tablesOfNoAccount, ...accountTables.map(({ table }) => table)];
  expect(listed.toSorted()).toEqual(tables);
});

/** Kinds with a row, by what the inventory names. */
const kinds = accountTables.flatMap((table) => ('kind' in table ? [table.kind] : []));

test('a file has a first line, rows of each kind that the inventory has, and the count of each kind', async () => {
  const { head, lines, end, result } = await exported();
  expect(head).toEqual({
    ...{ kind: 'posthouse.account', version: 1, account: ann.account, relay: relay.relayId },
    ...{ exported_at: relay.clock.now(), notes: expect.any(Array) },
  });
  expect(JSON.stringify(head?.notes)).toContain('this relay cannot read them');
  const counts = Object.fromEntries(
    [...Map.groupBy(lines, ({ kind }) => kind)].map(([kind, of]) => [kind, of.length]),
  );
  expect(Object.keys(counts).toSorted()).toEqual(kinds.toSorted());
  expect(end).toEqual({ kind: 'end', lines: counts });
  expect(result).toEqual({ account: ann.account, lines: counts });
});

test('lines have what was stored: texts as they are, JSON as values, messages sealed and with their sender', async () => {
  const { lines } = await exported();
  const of = (kind: string) => lines.filter((line) => line.kind === kind).map(({ row }) => row);
  expect(of('device').map(({ device_id }) => device_id)).toEqual(
    ann.deviceIds('phone', 'laptop').toSorted(),
  );
  expect(of('own_group')).toMatchObject([{ name: '100 %', status: 'active' }]);
  expect(of('profile')).toMatchObject([{ profile: { account: ann.account } }]);
  expect(of('report')).toMatchObject([{ reason: 'it is spam' }]);
  const sealed = { envelope: { from: ben.account }, certificate: { account: ben.account } };
  expect(of('message')).toMatchObject([sealed, { envelope: { from: ann.account } }]);
  expect(of('managed_channel')).toHaveLength(2);
  expect(of('group_membership')).toHaveLength(2);
});

test('nothing of an account that has nothing to do with it, and no secret', async () => {
  const text = JSON.stringify(await exported());
  expect(text).not.toContain(cem.account);
  expect(text).not.toContain(othersText);
  const secrets = [
    ...(await relay.rows('auth_sessions')).map(({ token_hash }) => token_hash),
    ...(await relay.rows('group_epochs')).map(({ relay_secret }) => relay_secret),
    ...['secret digest'],
  ];
  expect(secrets.length).toBeGreaterThan(4);
  for (const secret of secrets) expect(text).not.toContain(secret);
});

test('a certificate of another account that names the account brings nothing of that one', async () => {
  const { storage } = relay.context;
  const certificate = JSON.stringify({ account: cem.account, note: ann.account });
  await storage.write('test', (tx) =>
    tx.run(
      "INSERT INTO channel_certificates VALUES ('c', ?, ?)",
      cem.device().deviceId,
      certificate,
    ),
  );
  expect(JSON.stringify(await exported())).not.toContain(othersText);
});

test('an account that was never here is none', async () => {
  const stranger = { account: cem.account.replace(/.{4}$/, 'aaaa') } as Person;
  await expect(exported(stranger)).rejects.toMatchObject({ code: 'not_found' });
});

test('02 §18: bytes of a day are given for each relay that delivered, and to no account of another case', async () => {
  const { storage } = relay.context;
  const other = `inbox ${ann.account.toLowerCase()} 0xaa`;
  await storage.write('test', async (tx) => {
    for (const owner of [`inbox ${ann.account} 0xaa`, other]) {
      await tx.run('INSERT INTO daily_bytes (owner, day, bytes) VALUES (?, 20000, 3)', owner);
    }
  });
  const { lines } = await exported();
  const owners = lines.flatMap(({ kind, row }) => (kind === 'bytes_of_day' ? [row.owner] : []));
  expect(owners).toContain(`inbox ${ann.account} 0xaa`);
  expect(owners).not.toContain(other);
});

test('a guest, or an account that was deleted, is given what there is of it', async () => {
  const { storage } = relay.context;
  const guest = { account: cem.account.replace(/.{4}$/, 'bbbb') } as Person;
  await storage.write('test', (tx) =>
    tx.run(
      'INSERT INTO daily_bytes (owner, day, bytes) VALUES (?, 20000, 3)',
      `account ${guest.account}`,
    ),
  );
  expect((await exported(guest)).result.lines).toEqual({ bytes_of_day: 1 });
});

test('10,000 messages come in chunks of a few, from one snapshot', async () => {
  const { storage } = relay.context;
  const count = 10_000;
  await storage.write('test', (tx) =>
    tx.run(
      `INSERT INTO timeline_records (account, sequence, accepted_at, keep_until, envelope_id,
          certificate_id, bytes, visible_to)
        SELECT ?, n, 1, 1, r.envelope_id, r.certificate_id, 1, '' FROM
          (WITH RECURSIVE numbers (n) AS (SELECT 1000 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
            SELECT n FROM numbers) AS added,
          (SELECT envelope_id, certificate_id FROM timeline_records WHERE account = ? LIMIT 1) AS r`,
      ...[cem.account, 999 + count, ben.account],
    ),
  );
  let isFirst = true;
  const sizes: number[] = [];
  const sequences = new Set<unknown>();
  const emit = async (items: readonly JsonObject[]) => {
    // What is stored meanwhile is not of this moment.
    if (isFirst) await cem.publishProfile({ nickname: 'later' });
    isFirst = false;
    const messages = items.filter(({ kind }) => kind === 'message');
    if (messages.length > 0) sizes.push(messages.length);
    for (const { row } of messages) sequences.add((row as JsonObject).sequence);
    expect(JSON.stringify(items)).not.toContain('later');
  };
  await exportAccount({ storage, clock: relay.clock, emit }, cem.account);
  expect(sequences.size).toBeGreaterThanOrEqual(count);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(8);
});
