/** Posts stored in batches on PostgreSQL (decision record 0027). */
import type { DeviceCertificate } from '@posthouse/protocol';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { accounts } from '../../src/accounts/index.ts';
import { channelPosts } from '../../src/channels/append-post.ts';
import { insertChannel } from '../../src/channels/channel-store.ts';
import { channels } from '../../src/channels/index.ts';
import type { VerifiedPost } from '../../src/channels/verified-post.ts';
import { digest } from '../../src/digest.ts';
import type { Writer } from '../../src/storage/types.ts';
import { ask, open } from '../support/postgres-engine.ts';
import { EnginePair } from './engine-pair.ts';
import { heldUntilWaited } from './held-rows.ts';

const writers = ['ann', 'ben'] as const;
type Name = (typeof writers)[number] | 'eve';
const channelIds = ['c0', 'c1', 'c2'] as const;
type ChannelId = (typeof channelIds)[number] | 'closed';
const now = 36_000;

/** Ann owns the channels and Ben moderates them, Eve may not write. */
async function fill(tx: Writer): Promise<void> {
  for (const account of [...writers, 'eve']) {
    await tx.run(
      `INSERT INTO devices (account, device_id, not_before, expires_at, certificate_id, certificate)
        VALUES (?, ?, ?, ?, ?, 'c')`,
      ...[account, `${account}-0`, 0, now + 100, `${account}-id`],
    );
  }
  for (const channelId of [...channelIds, 'closed']) {
    await insertChannel(tx, {
      ...{ channelId, creator: 'ann', moderators: ['ben'], revision: 2, head: 4 },
      ...{
        status: channelId === 'closed' ? 'closed' : 'active',
        neededUntil: now + 50,
        storedBytes: 0,
      },
    });
  }
}

const engines = new EnginePair(channelPosts, { modules: [accounts, channels], fill });

interface Sent {
  readonly by?: Name;
  readonly to?: ChannelId;
  readonly id: number;
  readonly certificate?: string | undefined;
  readonly at?: number;
  readonly keep?: number;
  readonly text?: string;
  readonly most?: number;
}

function post(sent: Sent): VerifiedPost {
  const { by: account = 'ann', to: channelId = 'c0', id, at = now, keep = 10 } = sent;
  const { most: mostBytes = 1e9 } = sent;
  const text = JSON.stringify(sent);
  const deviceId = `${account}-0`;
  const certificateId = sent.certificate ?? `${account}-id`;
  const signer = { deviceId, certificateId, certificate: `{"of":"${account}"}` };
  return {
    ...{ channelId, text, now: at, keepUntil: at + keep, digest: digest(text), mostBytes },
    key: { account, messageId: `m${id}` },
    caller: { account, deviceId, signer, certificate: {} as DeviceCertificate },
  };
}

const usually = <T>(usual: T, ...others: T[]) =>
  fc.oneof({ weight: 6, arbitrary: fc.constant(usual) }, fc.constantFrom(usual, ...others));

const sent = fc.record({
  by: usually<Name>('ann', 'ben', 'eve'),
  to: fc.constantFrom<ChannelId[]>('c0', 'c0', 'c1', 'c2', 'closed'),
  id: fc.integer({ min: 0, max: 30 }),
  certificate: usually<string | undefined>(undefined, 'old'),
  at: usually(now, -1, 0, now + 99, now + 100),
  keep: fc.integer({ min: 0, max: 99 }),
  most: usually(1e9, 0, 100, 300),
  text: fc.string({ unit: 'binary', maxLength: 12 }).map((text) => text.replaceAll('\0', '')),
});

/** What is stored next to the usual, in some of the runs. */
const before = fc.constantFrom(
  '',
  `INSERT INTO channel_certificates VALUES ('c0', 'ann-0', 'before')`,
  `UPDATE channels SET head = ${Number.MAX_SAFE_INTEGER - 2} WHERE channel_id = 'c0'`,
  `INSERT INTO channel_posts VALUES ('c0', 1, 'ann', 'm1', 'd', 'deleted', 1, 1, NULL, NULL)`,
);

describe('06 §8.7, 0027: posts in batches', () => {
  test('store what each alone stores, in the same order, and decline what each alone declines', async () => {
    await engines.expectBatchesAlike({ before, inputs: sent.map(post) });
  });

  test('of several processes: each is stored once, sequences have no gap', async () => {
    await using other = await open(engines.url);
    const all = Array.from({ length: 400 }, (_, index) =>
      post({
        by: writers[index % 2] as Name,
        to: channelIds[index % 3] as ChannelId,
        id: index % 300,
      }),
    );
    const halves = [0, 1].map((half) =>
      all.filter((_, index) => (index + (index > 199 ? 1 : 0)) % 2 === half),
    );
    const outputs = await Promise.all([
      engines.append(halves[0] as VerifiedPost[]),
      engines.append(halves[1] as VerifiedPost[], other),
    ]);
    expect(outputs.flat().filter((output) => output !== undefined)).toHaveLength(300);
    const heads = await ask(
      engines.url,
      `SELECT c.head::int, (SELECT max(sequence)::int FROM channel_events e
          WHERE e.channel_id = c.channel_id) AS last,
        4 + (SELECT count(*)::int FROM channel_events e WHERE e.channel_id = c.channel_id) AS stored,
        4 + (SELECT count(*)::int FROM channel_posts p WHERE p.channel_id = c.channel_id) AS posts,
        (c.stored_bytes - (SELECT sum(bytes) FROM channel_events e
          WHERE e.channel_id = c.channel_id))::int AS uncounted
        FROM channels c WHERE status = 'active'`,
    );
    const one = { head: 104, last: 104, stored: 104, posts: 104, uncounted: 0 };
    expect(heads).toEqual(heads.map(() => one));
  });
});

describe('06 §8.6, 0027: what another process has changed between the first look and the batch', () => {
  test.each([
    ['the channel was closed', `UPDATE channels SET status = 'closed' WHERE channel_id = 'c0'`],
    ['a moderator was removed', `UPDATE channels SET moderators = '[]' WHERE channel_id = 'c0'`],
    [
      'the post was published',
      `INSERT INTO channel_posts VALUES ('c0', 1, 'ben', 'm1', 'd', 'readable', 1, 1)`,
    ],
  ])('%s: posts that rely on it are declined, others are not', async (_, sql) => {
    await using other = await open(engines.url);
    await other.write('channel:c0', (tx) => tx.run(sql));
    const some = [post({ id: 1, by: 'ben' }), post({ id: 1, by: 'ben', to: 'c1' })];
    expect(await engines.append(some)).toEqual([undefined, 5]);
    expect((await engines.rows()).channel_events).toHaveLength(1);
  });

  test.each([
    ['a device was removed', `DELETE FROM devices WHERE account = 'ben'`],
    ['a device was renewed', `UPDATE devices SET certificate_id = 'x' WHERE account = 'ben'`],
    ['a device expired', `UPDATE devices SET expires_at = ${now} WHERE account = 'ben'`],
  ])('%s: its posts are declined, others are not', async (_, sql) => {
    await using other = await open(engines.url);
    await other.write('account:ben', (tx) => tx.run(sql));
    expect(await engines.append([post({ id: 1, by: 'ben' }), post({ id: 2 })])).toEqual([
      ...[undefined, 5],
    ]);
  });

  test('a new descriptor: posts are stored under its revision', async () => {
    await using other = await open(engines.url);
    const sql = `UPDATE channels SET revision = 3, needed_until = 0, head = 7 WHERE channel_id = 'c0'`;
    await other.write('channel:c0', (tx) => tx.run(sql));
    expect(await engines.append([post({ id: 1 })])).toEqual([8]);
    const { channel_events: events, channels: stored } = await engines.rows();
    expect(events).toMatchObject([{ sequence: 8, descriptor_rev: 3 }]);
    expect(stored?.[0]).toMatchObject({ head: 8, revision: 3, needed_until: now + 10 });
  });
});

test('0027: repeats are declined in the transaction of the others', async () => {
  await ask(
    engines.url,
    `INSERT INTO channel_posts VALUES ('c0', 1, 'ann', 'm1', 'd', 'deleted', 1, 1)`,
  );
  const points: string[] = [];
  const reach = (point: string) => void points.push(point);
  await using counted = await open(engines.url, { faults: { reach } });
  points.length = 0;
  const inputs = [...[1, 2, 2].map((id) => post({ id })), post({ id: 2, to: 'c1' })];
  expect(await engines.append(inputs, counted)).toEqual([undefined, 5, undefined, 5]);
  expect(points.filter((point) => point === 'begun')).toHaveLength(1);
});

test('0027: of batches of two processes in a channel, the later one waits and numbers after the earlier', async () => {
  const sql = `UPDATE channels SET head = 9 WHERE channel_id = 'c0'`;
  await heldUntilWaited(engines.url, sql, async () => {
    expect(await engines.append([post({ id: 1 }), post({ id: 2, to: 'c1' })])).toEqual([10, 5]);
  });
});

test('0027: a batch has six statements and the commit mark, whatever its size', async () => {
  const statements: string[] = [];
  const faults = { beforeStatement: (sql: string) => void statements.push(sql) };
  await using counted = await open(engines.url, { faults });
  statements.length = 0;
  const some = (count: number, from: number) =>
    Array.from({ length: count }, (_, n) =>
      post({ by: writers[n % 2] as Name, to: channelIds[n % 3] as ChannelId, id: from + n }),
    );
  expect(await engines.append(some(128, 0), counted)).not.toContain(undefined);
  // Locks, channels, callers, published; posts, certificates, heads.
  expect(statements).toHaveLength(7);
  statements.length = 0;
  await engines.append(some(1, 200), counted);
  // The certificate is stored.
  expect(statements).toHaveLength(6);
});

test('0027: the statements of a batch use indexes, of 1 input and of 128', async () => {
  await engines.expectPlansWithIndexes((id) => post({ id, to: channelIds[id % 3] as ChannelId }));
});
