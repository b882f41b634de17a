/** `posthouse stats`, and lists of accounts, groups and channels, against sums of the rows. */
import { accountSigner } from '@posthouse/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { destinationsSql, waitingMailSql } from '../../src/messages/waiting-mail.ts';
import type { Row, Storage } from '../../src/storage/types.ts';
import { killAll, posthouse } from '../support/command.ts';
import { scansAndSorts } from '../support/engine.ts';
import { network } from '../support/modules.ts';
import { AdminRelay } from './admin-relay.ts';

let admin: AdminRelay;
let now: number;

const id = (byte: number) => accountSigner(network, new Uint8Array(32).fill(byte)).account;
const people = [1, 2, 3, 4, 5].map(id).toSorted();
const [ann = '', ben = '', cem = '', dan = '', eve = ''] = people;
const named = (prefix: string, letter: string) => `${prefix}_${letter.repeat(21)}A`;
const groups = ['a', 'b', 'c'].map((letter) => named('grp', letter));
const channels = ['d', 'e'].map((letter) => named('chan', letter));
const day = 86_400;

/** How many messages each timeline has: one more than two steps of the reader, and none. */
const timelines: [account: string, count: number][] = [
  [ann, 1_201],
  [ben, 3],
  [dan, 499],
];

beforeAll(async () => {
  admin = await AdminRelay.start();
  now = admin.clock.now();
  const { storage, identity } = admin.relay.context;
  await storage.write('relay', async (tx) => {
    for (const [index, account] of people.entries()) {
      const home = account === eve ? `0x${'9'.repeat(40)}` : identity.relayId;
      await tx.run('INSERT INTO device_states VALUES (?, 1, ?)', account, `{"ä":${index}}`);
      await tx.run(
        `INSERT INTO account_routes (account, revision, content, relay_id, expires_at, conflict, route)
          VALUES (?, 1, '', ?, ?, 0, ?)`,
        ...[account, home, now + day, 'r'.repeat(100 + index)],
      );
    }
    await tx.run("INSERT INTO profiles VALUES (?, ?, 1, 'profile', 'certificate')", ann, now - 5);
    await tx.run(
      `INSERT INTO devices (account, device_id, not_before, expires_at, certificate_id, certificate)
        VALUES (?, 'dev_a', ?, ?, '', '')`,
      ...[ann, now - 1, now + day],
    );
    await tx.run('INSERT INTO blob_usage VALUES (?, 8192)', ben);
    await tx.run('INSERT INTO blob_total (slot, counted) VALUES (1, 8192)');
    for (const [account, count] of timelines) {
      for (let sequence = 1; sequence <= count; sequence += 1) {
        await tx.run(
          "INSERT INTO timeline_records VALUES (?, ?, ?, ?, ?, '', ?, '')",
          ...[account, sequence, now - (sequence % 3) * day, now + 100 + sequence],
          ...[`envelope ${account} ${sequence}`, 1_000 + sequence],
        );
      }
    }
    await tx.run("INSERT INTO message_envelopes VALUES ('one', ?, 'envelope')", now + 90);
    // More than one step of the reader.
    await tx.run(
      `INSERT INTO message_envelopes SELECT 'e' || n, CAST(? AS BIGINT), 'ä' || n FROM
        (WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 600)
          SELECT n FROM numbers) AS rows`,
      now + 91,
    );
    for (const [index, group] of groups.entries()) {
      await tx.run(
        `INSERT INTO groups (group_id, status, owner, name, description, member_capacity,
            invite_policy, commitment, chain_head, sequence, epoch, member_count, ban_count,
            access_ended, box_set, last_box_set)
          VALUES (?, ?, ?, ?, '', 5, '', '', '', 9, 1, 2, 0, 0, 0, 0)`,
        ...[group, index === 2 ? 'closed' : 'active', ann, `100 %25 ${index}`],
      );
      await tx.run(
        "INSERT INTO group_events VALUES (?, 1, 1, ?, 'dev', 'c', ?, '')",
        ...[group, now - 2 * day, 10 * (index + 1)],
      );
      for (let sequence = 2; sequence <= 300 * index; sequence += 1) {
        await tx.run(
          "INSERT INTO group_messages VALUES (?, ?, 1, ?, ?, 'dev', 'c', ?, '')",
          ...[group, sequence, now - 1, now + day, 7],
        );
      }
    }
    for (const [index, channel] of channels.entries()) {
      await tx.run(
        `INSERT INTO channels (channel_id, creator, moderators, status, revision, head, needed_until)
          VALUES (?, ?, '[]', 'active', 1, 4, 0)`,
        ...[channel, cem],
      );
      await tx.run(
        "INSERT INTO channel_events VALUES (?, 1, 'descriptor', 1, NULL, ?, ?, NULL, 'dev', 40, ?)",
        ...[channel, now - 3 * day, now + day, JSON.stringify({ name: `News\n${index}` })],
      );
      await tx.run(
        "INSERT INTO channel_events VALUES (?, 2, 'post', 1, NULL, ?, ?, NULL, 'dev', 5, '')",
        ...[channel, now, now + day],
      );
      await tx.run(
        "INSERT INTO channel_withheld_events VALUES (?, 3, 'post', 1, NULL, ?, ?, NULL, 'dev', 6, '')",
        ...[channel, now, now + day],
      );
    }
    for (const [sender, name, at] of [
      [ann, 'm1', now - 50],
      [ben, 'm2', now - 60],
    ] as const) {
      await tx.run(
        `INSERT INTO sent_results (sender, message_id, request, accepted_at, keep_until, status)
          VALUES (?, ?, '', ?, ?, 'delivering')`,
        ...[sender, name, at, now + day],
      );
      await tx.run(
        `INSERT INTO deliveries (sender, message_id, recipient, envelope_id, certificate_id,
            recipient_boxes, deadline, next_attempt_at, attempts, destination)
          VALUES (?, ?, '', '', '', '[]', ?, ?, 0, '')`,
        ...[sender, name, now + day, now + day],
      );
    }
  });
});
afterAll(async () => {
  killAll();
  await admin[Symbol.asyncDispose]();
});

/** Values of one row, added up by the database at once. */
async function sum(sql: string, ...values: (string | number)[]): Promise<number> {
  const row = await admin.relay.context.storage.read((tx) => tx.get<Row>(sql, ...values));
  return Number(Object.values(row ?? {})[0] ?? 0);
}

test('posthouse stats is what the sums of the rows are, over both ways', async () => {
  const { value, status } = await admin.run('relay/stats', { top: 2 });
  expect(status).toBe(200);
  const bytesOf = (table: string) => sum(`SELECT sum(bytes) FROM ${table}`);
  const lastDay = (table: string) =>
    sum(`SELECT sum(bytes) FROM ${table} WHERE accepted_at >= ?`, now - day);
  const texts = (table: string, column: string) =>
    sum(`SELECT sum(octet_length(${column})) FROM ${table}`);
  const { bytes, oldest_deadline, ...rest } = value as { bytes: Record<string, number> } & Row;
  expect(rest).toMatchObject({
    ...{ taken_at: now, accounts: 4, groups: 2, channels: 2 },
    last_day: {
      timelines: await lastDay('timeline_records'),
      groups: (await lastDay('group_messages')) + (await lastDay('group_events')),
      channels: (await lastDay('channel_events')) + (await lastDay('channel_withheld_events')),
    },
    queue: { messages: 2, oldest: now - 60 },
  });
  expect(oldest_deadline).toBe(now + 90);
  expect(bytes).toMatchObject({
    accounts:
      (await texts('device_states', 'state')) +
      (await texts('profiles', 'profile')) +
      (await texts('profiles', 'certificate')) +
      (await texts('account_routes', 'route')),
    messages: await texts('message_envelopes', 'envelope'),
    groups: (await bytesOf('group_messages')) + (await bytesOf('group_events')),
    channels: (await bytesOf('channel_events')) + (await bytesOf('channel_withheld_events')),
    attachments: 8_192,
  });
  expect(bytes.database).toBeGreaterThan(100_000);
  const topOf = async (table: string, owner: string) =>
    await admin.relay.context.storage.read((tx) =>
      tx.all<Row>(
        `SELECT ${owner} AS id, count(*) AS records, CAST(sum(bytes) AS BIGINT) AS bytes
          FROM ${table} GROUP BY ${owner} ORDER BY sum(bytes) DESC LIMIT 2`,
      ),
    );
  const both = `(SELECT group_id, bytes FROM group_messages UNION ALL
    SELECT group_id, bytes FROM group_events) AS records`;
  expect(value.top).toMatchObject({
    accounts: (await topOf('timeline_records', 'account')).map((row) => ({ ...row })),
    groups: (await topOf(both, 'group_id')).map((row) => ({ ...row })),
  });
  const counted = (await admin.command('stats', '--top', '2', '--json')).output;
  const { ended, output } = posthouse(
    ['stats', '--top', '2', '--json', '--data', admin.data.path],
    admin.data.environment,
  );
  expect(await ended).toBe(0);
  const alone = JSON.parse(output.text) as Row;
  expect(alone).toEqual({
    ...JSON.parse(counted),
    taken_at: alone.taken_at,
    last_day: alone.last_day,
  });
  const shown = (await admin.command('stats')).output;
  expect(shown).toMatch(/^accounts +4$/m);
  expect(shown).toMatch(new RegExp(`^${ann} +1,201 +`, 'm'));
});

test('totals are read once for 10 seconds, and by all who ask meanwhile', async () => {
  admin.clock.advance(20);
  const { storage } = admin.relay.context;
  const read = storage.read.bind(storage);
  let reads = 0;
  storage.read = (work) => {
    // Jobs read, too, when the clock goes on.
    if (new Error().stack?.includes('verbs/inventory.ts') === true) reads += 1;
    return read(work);
  };
  const first = await Promise.all([admin.run('relay/stats'), admin.run('relay/stats')]);
  expect(new Set(first.map(({ text }) => text)).size).toBe(1);
  const once = reads;
  expect(once).toBeGreaterThan(0);
  await admin.run('relay/stats', { top: 1 });
  expect(reads).toBe(once);
  admin.clock.advance(11);
  expect((await admin.run('relay/stats')).value.taken_at).toBe(admin.clock.now());
  expect(reads).toBe(2 * once);
  storage.read = read;
});

test('0044: posthouse stats counts what a restore left incomplete', async () => {
  const none = { accounts_unconfirmed: 0, groups_waiting: 0, groups_incomplete: 0 };
  // Sums are kept for ten seconds.
  const stats = async () => {
    admin.clock.advance(11);
    return (await admin.run('relay/stats')).value.restored;
  };
  expect(await stats()).toEqual({ restored_at: null, ...none });
  expect((await admin.command('stats')).output).not.toContain('restored');
  const { storage } = admin.relay.context;
  const change = (sql: string, ...values: (string | number)[]) =>
    storage.write('relay', (tx) => tx.run(sql, ...values));
  await change("INSERT INTO relay_facts VALUES ('restored_at', ?)", String(now - 9));
  const later = now + day;
  const held = 'UPDATE groups SET held_until = ?, losses_end_at = ? WHERE group_id = ?';
  await change(held, later, later, groups[0] ?? '');
  await change(held, now, later, groups[1] ?? '');
  await change('UPDATE account_routes SET held_until = -1 WHERE account = ?', ann);
  expect(await stats()).toEqual({
    ...{ restored_at: now - 9, accounts_unconfirmed: 1 },
    ...{ groups_waiting: 1, groups_incomplete: 2 },
  });
  const { output } = await admin.command('stats');
  expect(output).toMatch(/^groups that wait for their owner +1$/m);
  await change("DELETE FROM relay_facts WHERE name = 'restored_at'");
  await change('UPDATE groups SET held_until = NULL, losses_end_at = NULL');
  await change('UPDATE account_routes SET held_until = 0');
  expect(await stats()).toEqual({ restored_at: null, ...none });
});

test('lists have each account, group and channel once, with the sums of its own rows', async () => {
  const all = async (verb: string, limit: number) => {
    const found: Row[] = [];
    for (let cursor: unknown; ; ) {
      const { value } = await admin.run(verb, { limit, ...(cursor ? { cursor } : {}) });
      found.push(...(value.items as Row[]));
      cursor = value.next;
      if (cursor === undefined) return found;
    }
  };
  const accounts = await all('account/list', 2);
  expect(accounts.map(({ account }) => account)).toEqual(people);
  const has = ({ account, records, bytes, oldest, newest }: Row) => ({
    ...{ account, records, bytes, oldest, newest },
  });
  for (const item of accounts) {
    const of = (what: string) =>
      sum(`SELECT ${what} FROM timeline_records WHERE account = ?`, String(item.account));
    const records = await of('count(*)');
    expect(has(item)).toEqual({
      ...{ account: item.account, records, bytes: await of('sum(bytes)') },
      oldest: records === 0 ? null : await of('min(accepted_at)'),
      newest: records === 0 ? null : await of('max(accepted_at)'),
    });
  }
  expect(accounts[0]).toMatchObject({ devices: 1, profile_at: now - 5, attachment_bytes: 0 });
  expect(accounts[1]).toMatchObject({ attachment_bytes: 8_192, home: admin.relay.relayId });
  expect(await all('account/list', 100)).toEqual(accounts);
  expect(await all('group/list', 1)).toMatchObject(
    groups.map((group_id, index) => ({
      ...{ group_id, name: `100 % ${index}`, owner: ann, members: 2 },
      records: Math.max(1, 300 * index),
      bytes: 10 * (index + 1) + 7 * Math.max(0, 300 * index - 1),
    })),
  );
  expect(await all('channel/list', 1)).toMatchObject(
    channels.map((channel_id, index) => ({
      ...{ channel_id, name: `News\n${index}`, owner: cem, status: 'active' },
      ...{ records: 3, bytes: 51, last_day_bytes: 11 },
    })),
  );
  const shown = await admin.run('account/show', { account: ann });
  expect(shown.value).toEqual({
    ...accounts[0],
    devices: [{ device_id: 'dev_a', not_before: now - 1, expires_at: now + day }],
  });
  expect(await admin.run('account/show', { account: id(9) })).toMatchObject({
    ...{ status: 404, value: { code: 'not_found' } },
  });
  const list = (await admin.command('channel', 'list')).output.trimEnd().split('\n');
  expect(list).toHaveLength(3);
  expect(list[1]).toContain('News 0');
  expect((await admin.command('group', 'show', String(groups[1]))).output).toMatch(
    /^name +100 % 1$/m,
  );
});

/** All items of a list, in pages of one. */
async function oneByOne(verb: string, params: object = {}): Promise<Row[]> {
  const found: Row[] = [];
  for (let cursor: unknown; ; ) {
    const { value } = await admin.run(verb, { ...params, limit: 1, ...(cursor ? { cursor } : {}) });
    found.push(...(value.items as Row[]));
    cursor = value.next;
    if (cursor === undefined) return found;
  }
}

test('06 §8.10: reports are listed once, the newest first, of all, one channel or one post', async () => {
  const [first = '', second = ''] = channels;
  const reports = [
    ...[[first, 2, ann, 10] as const, [second, 2, ann, 11] as const],
    ...[[first, 2, ben, 11] as const, [first, 3, ben, 11] as const],
  ];
  await admin.relay.context.storage.write('relay', async (tx) => {
    for (const [channel, sequence, account, at] of reports) {
      await tx.run(
        `INSERT INTO channel_reports VALUES (?, ?, ?, 'dev', '"\\u0000 spam"', ?, ?)`,
        ...[channel, sequence, account, at, now + day],
      );
    }
  });
  const key = ({ channel_id, sequence, account, reported_at }: Row) => [
    ...[channel_id, sequence, account, reported_at],
  ];
  const newest = [reports[1], reports[3], reports[2], reports[0]];
  expect((await oneByOne('report/list')).map(key)).toEqual(newest);
  const ofFirst = newest.filter((report) => report?.[0] === first);
  expect((await oneByOne('report/list', { channel_id: first })).map(key)).toEqual(ofFirst);
  const ofPost = ofFirst.filter((report) => report?.[1] === 2);
  expect(await oneByOne('report/list', { channel_id: first, sequence: 2 })).toMatchObject(
    ofPost.map((report) => ({ account: report?.[2], reason: '\0 spam', post: 'gone' })),
  );
  const post = { channel_id: first, sequence: 2 };
  expect((await admin.run('report/dismiss', { ...post, account: ann })).value).toEqual({
    dismissed: 1,
  });
  expect(admin.takeLines().at(-1)).toMatchObject({
    verb: 'report dismiss',
    subject: `post 2 of ${first}`,
  });
  expect(await admin.run('report/withhold', { ...post, sequence: 9 })).toMatchObject({
    ...{ status: 404, value: { code: 'not_found', message: `post 9 of ${first} does not exist` } },
  });
});

test('07 §B5: other relays are listed once, with those that only have mail or a block', async () => {
  const relay = (digit: string) => `0x${digit.repeat(40)}`;
  await admin.relay.context.storage.write('relay', async (tx) => {
    for (const [digit, error] of [['a', 'refused'] as const, ['c', null] as const]) {
      await tx.run(
        `INSERT INTO relays (relay_id, endpoint, status, updated_at, seen_at, failures, failing_since, retry_at, last_error)
          VALUES (?, 'https://relay.example/svc/v1', 'active', 1000, 1, 0, ?, ?, ?)`,
        ...[relay(digit), error && now - 9, error && now + 9, error],
      );
    }
    await tx.run('UPDATE deliveries SET destination = ? WHERE sender = ?', relay('b'), ann);
    await tx.run(
      "INSERT INTO blocks (kind, id, reason, created_at) VALUES ('relay', ?, 'spam', ?)",
      relay('d'),
      now,
    );
  });
  const peers = (await oneByOne('peer/list')).filter(({ relay_id }) =>
    /(.)\1{39}$/.test(String(relay_id)),
  );
  expect(peers).toMatchObject([
    { relay_id: relay('a'), state: 'failing', last_error: 'refused', next_try: now + 9 },
    { relay_id: relay('b'), state: 'unlisted', mail_waiting: 1, mail_oldest: now - 50 },
    { relay_id: relay('c'), state: 'disconnected' },
    { relay_id: relay('d'), state: 'blocked', block_reason: 'spam' },
  ]);
  const { value } = await admin.run('peer/list');
  expect(value.unlocated).toEqual({ messages: 1, more: false, oldest: now - 60 });
});

test('07 §B5: what a list of relays reads does not grow with the mail that waits for one', async () => {
  const { storage } = admin.relay.context;
  const busy = `0x${'0'.repeat(40)}`;
  const waiting = 3_000;
  await storage.write('relay', async (tx) => {
    const numbers = `(WITH RECURSIVE numbers (n) AS
        (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${waiting}) SELECT n FROM numbers) AS rows`;
    await tx.run(
      `INSERT INTO sent_results (sender, message_id, request, accepted_at, keep_until, status)
        SELECT ?, 'busy ' || n, 'r', ?, 9999999999, 'delivering' FROM ${numbers}`,
      ...[cem, now - 30],
    );
    await tx.run(
      `INSERT INTO deliveries (sender, message_id, recipient, envelope_id, certificate_id, recipient_boxes,
          deadline, next_attempt_at, attempts, destination)
        SELECT ?, 'busy ' || n, 'r', 'e', 'c', '[]', 9999999999, 9999999999, 1, ? FROM ${numbers}`,
      ...[cem, busy],
    );
  });
  const { statements, value } = await withStatements(storage, () =>
    admin.run('peer/list', { limit: 1 }),
  );
  const mail = { mail_waiting: 500, mail_more: true, mail_oldest: now - 30 };
  expect(value).toMatchObject({ items: [{ relay_id: busy, ...mail }], next: expect.any(String) });
  expect((await oneByOne('peer/list')).filter(({ relay_id }) => relay_id === busy)).toHaveLength(1);
  // Jobs may read the queue meanwhile.
  const ofMail = statements.filter(({ sql }) => sql === destinationsSql || sql === waitingMailSql);
  // Which relays have mail, then the mail of the one that is shown and of those not located.
  expect(ofMail).toHaveLength(3);
  for (const { sql, rows } of ofMail) {
    expect(rows).toBeLessThanOrEqual(2);
    expect(sql).toContain('LIMIT ?');
    expect(await scansAndSorts(storage, sql)).toEqual([]);
  }
  await storage.write('relay', async (tx) => {
    await tx.run('DELETE FROM deliveries WHERE destination = ?', busy);
    await tx.run("DELETE FROM sent_results WHERE message_id LIKE 'busy %'");
  });
});

/** Runs something, and notes what it reads, with the number of rows that each statement returned. */
async function withStatements<T extends object>(storage: Storage, work: () => Promise<T>) {
  const statements: { sql: string; rows: number }[] = [];
  const read = storage.read.bind(storage);
  storage.read = (reads) =>
    read((tx) =>
      reads({
        get: async (sql, ...values) => {
          statements.push({ sql, rows: 1 });
          return await tx.get(sql, ...values);
        },
        all: async (sql, ...values) => {
          const found = await tx.all<never>(sql, ...values);
          statements.push({ sql, rows: found.length });
          return found;
        },
      }),
    );
  try {
    return { ...(await work()), statements };
  } finally {
    storage.read = read;
  }
}

test('a page ends early once it has added up 20,000 records, and the next one goes on', async () => {
  const { storage } = admin.relay.context;
  await storage.write('relay', (tx) =>
    tx.run(
      `INSERT INTO timeline_records
        SELECT ?, n, 1, 2, 'many ' || n, '', 10, '' FROM
          (WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 20000)
            SELECT n FROM numbers) AS rows`,
      cem,
    ),
  );
  const first = await admin.run('account/list');
  const items = first.value.items as Row[];
  expect(items.map(({ account }) => account)).toEqual([ann, ben, cem]);
  expect(items[2]).toMatchObject({ records: 20_000, bytes: 200_000 });
  const second = await admin.run('account/list', { cursor: String(first.value.next) });
  expect(second.value).toMatchObject({ items: [{ account: dan, records: 499 }, { account: eve }] });
  expect(second.value.next).toBeUndefined();
});
