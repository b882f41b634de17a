/** Group messages stored in batches on PostgreSQL (decision record 0027). */
import type { DeviceCertificate } from '@posthouse/protocol';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { markInactive } from '../../src/accounts/inactive-store.ts';
import { accounts } from '../../src/accounts/index.ts';
import { digest } from '../../src/digest.ts';
import { openInterval } from '../../src/groups/chain/access-store.ts';
import { groupMessages } from '../../src/groups/chain/append-message.ts';
import { insertBan, insertGroup, insertMember } from '../../src/groups/chain/group-store.ts';
import { insertEpoch } from '../../src/groups/chain/key-store.ts';
import type { NewGroupMessage } from '../../src/groups/chain/new-message.ts';
import { groups } from '../../src/groups/index.ts';
import type { Writer } from '../../src/storage/types.ts';
import { ask, open } from '../support/postgres-engine.ts';
import { EnginePair } from './engine-pair.ts';
import { heldUntilWaited } from './held-rows.ts';

const members = ['ann', 'ben', 'cat'] as const;
type Name = (typeof members)[number] | 'dan' | 'eve';
const groupIds = ['g0', 'g1', 'g2'] as const;
type GroupId = (typeof groupIds)[number] | 'closed';
const hour = 3_600;
const now = 10 * hour;

/** Ann, Ben and Cat are members, Dan is banned, Eve is no member; Cat's home is another relay. */
async function fill(tx: Writer): Promise<void> {
  for (const account of ['ann', 'ben', 'dan', 'eve']) await insertDevice(tx, account);
  await tx.run(
    `INSERT INTO remote_devices (account, device_id, relay_id, certificate_id, certificate, status,
        expires_at, confirmed_at, stale, generation, failures, next_check_at)
      VALUES ('cat', 'cat-0', 'there', 'cat-id', 'c', 'active', ?, 0, 0, 0, 0, 0)`,
    now + hour,
  );
  for (const groupId of [...groupIds, 'closed']) {
    const texts = { commitment: 'c', chain_head: 'h', name: '', description: '' };
    await insertGroup(tx, {
      ...{ group_id: groupId, owner: 'ann', invite_policy: 'administrators', ...texts },
      ...{ status: groupId === 'closed' ? 'closed' : 'active', member_capacity: 9 },
      ...{ sequence: 4, epoch: 2, member_count: 3, ban_count: 1, access_ended: 3 },
      ...{ box_set: 0, last_box_set: 0, losses_end_at: null, held_until: null, stored_bytes: 0 },
    });
    const epoch = { epoch: 2, relaySecret: 's', boxSet: 0, keepUntil: now + hour };
    await insertEpoch(tx, groupId, epoch);
    for (const account of [...members, 'dan']) {
      const key = { member_encryption_public_key: 'k', since: 0 };
      await insertMember(tx, groupId, { account, role: 'member', ...key });
    }
    await insertBan(tx, groupId, 'dan');
  }
}

async function insertDevice(tx: Writer, account: string): Promise<void> {
  await tx.run(
    `INSERT INTO devices (account, device_id, not_before, expires_at, certificate_id, certificate)
      VALUES (?, ?, ?, ?, ?, 'c')`,
    ...[account, `${account}-0`, now - hour, now + hour, `${account}-id`],
  );
}

const engines = new EnginePair(groupMessages, { modules: [accounts, groups], fill });

interface Sent {
  readonly from?: Name;
  readonly to?: GroupId;
  readonly id: number;
  readonly epoch?: number;
  readonly certificate?: string | undefined;
  readonly at?: number;
  readonly days?: number;
  readonly text?: string;
  readonly most?: number;
}

function message(sent: Sent): NewGroupMessage {
  const { from: account = 'ann', to: groupId = 'g0', id, epoch = 2, at = now, days = 1 } = sent;
  const { most: mostBytes = 1e9 } = sent;
  const text = JSON.stringify(sent);
  const deviceId = `${account}-0`;
  const certificateId = sent.certificate ?? `${account}-id`;
  const signer = { deviceId, certificateId, certificate: `{"of":"${account}"}` };
  const certificate = {} as DeviceCertificate;
  return {
    ...{ groupId, epoch, text, now: at, keepUntil: at + days * hour, digest: digest(text) },
    mostBytes,
    key: { account, messageId: `m${id}` },
    caller: { account, deviceId, signer, certificate },
  };
}

const sequencesOf = (outputs: readonly ({ readonly sequence: number } | undefined)[]) =>
  outputs.map((output) => output?.sequence);

const usually = <T>(usual: T, ...others: T[]) =>
  fc.oneof({ weight: 6, arbitrary: fc.constant(usual) }, fc.constantFrom(usual, ...others));

const sent = fc.record({
  from: usually<Name>('ann', 'ben', 'cat', 'dan', 'eve'),
  to: fc.constantFrom<GroupId[]>('g0', 'g0', 'g1', 'g2', 'closed'),
  id: fc.integer({ min: 0, max: 30 }),
  epoch: usually(2, 1, 3),
  certificate: usually<string | undefined>(undefined, 'old'),
  at: usually(now, now - hour - 1, now - hour, now + hour - 1, now + hour),
  days: fc.integer({ min: 0, max: 4 }),
  most: usually(1e9, 0, 100, 300),
  text: fc.string({ unit: 'binary', maxLength: 12 }).map((text) => text.replaceAll('\0', '')),
});

/** What is stored next to the usual, in some of the runs. */
const before = fc.constantFrom(
  '',
  `INSERT INTO inactive_devices VALUES ('zoe', 'zoe-0')`,
  `INSERT INTO remote_devices SELECT 'ann', 'ann-0', relay_id, 'ann-id', certificate, status,
    expires_at, confirmed_at, stale, generation, failures, next_check_at FROM remote_devices`,
  `INSERT INTO group_certificates VALUES ('g0', 'ann-id', 'before', NULL)`,
  `INSERT INTO group_certificates VALUES ('g0', 'ann-id', 'before', ${now + 2 * hour})`,
  `UPDATE groups SET sequence = ${Number.MAX_SAFE_INTEGER - 2} WHERE group_id = 'g0'`,
  `INSERT INTO group_sent VALUES ('ann', 'm1', 'gone', 1, 'e', 1)`,
);

describe('05 §13.28, 0027: group messages in batches', () => {
  test('store what each alone stores, in the same order, and decline what each alone declines', async () => {
    await engines.expectBatchesAlike({ before, inputs: sent.map(message) });
  });

  test('of several processes: each is stored once, sequences have no gap', async () => {
    await using other = await open(engines.url);
    const all = Array.from({ length: 400 }, (_, index) =>
      message({
        from: members[index % 3] as Name,
        to: groupIds[(index * 7) % 3] as GroupId,
        id: Math.floor((index % 300) / 3),
      }),
    );
    const halves = [0, 1].map((half) => all.filter((_, index) => index % 2 === half));
    const outputs = await Promise.all([
      engines.append(halves[0] as NewGroupMessage[]),
      engines.append(halves[1] as NewGroupMessage[], other),
    ]);
    const accepted = outputs.flat().filter((output) => output !== undefined);
    expect(new Set(all.map(({ key }) => `${key.account} ${key.messageId}`)).size).toBe(
      accepted.length,
    );
    const heads = await ask(
      engines.url,
      `SELECT g.sequence::int AS head, (SELECT max(sequence)::int FROM group_messages m
          WHERE m.group_id = g.group_id) AS last,
        4 + (SELECT count(*)::int FROM group_messages m WHERE m.group_id = g.group_id) AS stored,
        4 + (SELECT count(*)::int FROM group_sent s WHERE s.group_id = g.group_id) AS results,
        (g.stored_bytes - (SELECT sum(bytes) FROM group_messages m
          WHERE m.group_id = g.group_id))::int AS uncounted
        FROM groups g WHERE status = 'active'`,
    );
    for (const { head, ...same } of heads) {
      expect(same).toEqual({ last: head, stored: head, results: head, uncounted: 0 });
    }
  });
});

const deviceOf = (name: string) => `account = '${name}' AND device_id = '${name}-0'`;

describe('05 §12.6, 0027: what another process has changed between the first look and the batch', () => {
  test.each<[string, string, number | undefined]>([
    [
      'the group was closed',
      `UPDATE groups SET status = 'closed' WHERE group_id = 'g0'`,
      undefined,
    ],
    ['a new epoch began', `UPDATE groups SET epoch = 3 WHERE group_id = 'g0'`, undefined],
    ['a member left', `DELETE FROM group_members WHERE account = 'ann' AND group_id = 'g0'`, 5],
    ['a member was banned', `INSERT INTO group_bans VALUES ('g0', 'ann')`, 5],
  ])('%s: messages that rely on it are declined, others are not', async (_, sql, ofBen) => {
    await using other = await open(engines.url);
    await other.write('group:g0', (tx) => tx.run(sql));
    const outputs = await engines.append([
      ...[message({ id: 1 }), message({ id: 2, to: 'g1' }), message({ id: 3, from: 'ben' })],
    ]);
    expect(sequencesOf(outputs)).toEqual([undefined, 5, ofBen]);
    expect((await engines.rows()).group_messages).toHaveLength(ofBen === undefined ? 1 : 2);
  });

  test.each([
    ['a device was removed', `DELETE FROM devices WHERE ${deviceOf('ann')}`, 'ann'],
    [
      'a device was renewed',
      `UPDATE devices SET certificate_id = 'x' WHERE ${deviceOf('ann')}`,
      'ann',
    ],
    ['a device expired', `UPDATE devices SET expires_at = ${now} WHERE ${deviceOf('ann')}`, 'ann'],
    [
      'a device begins later',
      `UPDATE devices SET not_before = ${now + 1} WHERE ${deviceOf('ann')}`,
      'ann',
    ],
    ['a home relay answered no', `UPDATE remote_devices SET status = 'inactive'`, 'cat'],
    ['a home relay must be asked', 'UPDATE remote_devices SET stale = 1', 'cat'],
    ['a remote device expired', `UPDATE remote_devices SET expires_at = ${now}`, 'cat'],
    ['a remote device was renewed', `UPDATE remote_devices SET certificate_id = 'x'`, 'cat'],
    ['a remote device was forgotten', 'DELETE FROM remote_devices', 'cat'],
  ] as const)('%s: its messages are declined, others are not', async (_, sql, from) => {
    await using other = await open(engines.url);
    await other.write(`account:${from}`, (tx) => tx.run(sql));
    const outputs = await engines.append([
      message({ id: 1, from }),
      message({ id: 2, from: 'ben' }),
    ]);
    expect(sequencesOf(outputs)).toEqual([undefined, 5]);
  });

  test('05 §7.3: while a removed device has access, messages of its group are declined', async () => {
    await using other = await open(engines.url);
    const device = { account: 'ben', deviceId: 'ben-9' };
    const range = { messages: { from: 1 }, keys: { from: 1 }, authority: true };
    await other.write('group:g0', async (tx) => {
      await openInterval(tx, 'g0', { ...device, access: range });
      // Its access to another group has ended.
      await openInterval(tx, 'g1', { ...device, access: range });
      await tx.run(`UPDATE group_intervals SET message_to = 3, key_to = 1 WHERE group_id = 'g1'`);
    });
    const both = (id: number) => [message({ id }), message({ id: id + 1, to: 'g1' })];
    expect(sequencesOf(await engines.append(both(1)))).toEqual([5, 5]);
    await other.write('account:ben', (tx) => markInactive(tx, device));
    expect(sequencesOf(await engines.append(both(3)))).toEqual([undefined, 6]);
  });

  test('repeats, of whatever group, are declined in the transaction of the others', async () => {
    await ask(engines.url, `INSERT INTO group_sent VALUES ('ann', 'm1', 'g1', 1, 'e', 1)`);
    const points: string[] = [];
    const reach = (point: string) => void points.push(point);
    await using counted = await open(engines.url, { faults: { reach } });
    points.length = 0;
    const inputs = [...[1, 2, 2].map((id) => message({ id })), message({ id: 2, to: 'g1' })];
    const outputs = await engines.append(inputs, counted);
    expect(sequencesOf(outputs)).toEqual([undefined, 5, undefined, undefined]);
    expect(points.filter((point) => point === 'begun')).toHaveLength(1);
  });
});

describe('0027: batches of two processes in the same group', () => {
  test('the later one waits for the group, and numbers after the earlier one', async () => {
    await heldUntilWaited(
      engines.url,
      `UPDATE groups SET sequence = 9 WHERE group_id = 'g0'`,
      async () => {
        const outputs = await engines.append([message({ id: 1 }), message({ id: 2, to: 'g1' })]);
        expect(sequencesOf(outputs)).toEqual([10, 5]);
      },
    );
  });

  test('an ID accepted in another group meanwhile is declined, and sequences have no gap', async () => {
    const sql = `INSERT INTO group_sent VALUES ('ann', 'm2', 'g1', 5, 'e', 1)`;
    await heldUntilWaited(engines.url, sql, async () => {
      const outputs = await engines.append([1, 2, 3].map((id) => message({ id })));
      expect(sequencesOf(outputs)).toEqual([5, undefined, 6]);
    });
  });
});

test('05 §5.4: a group without a sequence left declines its messages and no others', async () => {
  await ask(
    engines.url,
    `UPDATE groups SET sequence = ${Number.MAX_SAFE_INTEGER - 1} WHERE group_id = 'g0'`,
  );
  const outputs = await engines.append([
    ...[message({ id: 1 }), message({ id: 2, to: 'g1' }), message({ id: 3, from: 'ben' })],
  ]);
  expect(sequencesOf(outputs)).toEqual([Number.MAX_SAFE_INTEGER, 5, undefined]);
});

test('0027: a batch has seven statements and the commit mark, whatever its size', async () => {
  const statements: string[] = [];
  const faults = { beforeStatement: (sql: string) => void statements.push(sql) };
  await using counted = await open(engines.url, { faults });
  statements.length = 0;
  const some = (count: number, from: number) =>
    Array.from({ length: count }, (_, n) =>
      message({ from: members[n % 3] as Name, to: groupIds[n % 3] as GroupId, id: from + n }),
    );
  expect(await engines.append(some(128, 0), counted)).not.toContain(undefined);
  // Locks, groups, callers, stale access, senders; messages, certificates, sequences.
  expect(statements).toHaveLength(8);
  statements.length = 0;
  await engines.append(some(1, 200), counted);
  // The certificate is kept for long enough.
  expect(statements).toHaveLength(7);
});

test('0027: the statements of a batch use indexes, of 1 input and of 128', async () => {
  await engines.expectPlansWithIndexes((id) =>
    message({ id, to: groupIds[id % 3] as GroupId, days: 4 }),
  );
});
