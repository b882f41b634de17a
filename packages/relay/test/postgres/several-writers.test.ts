/**
 * What only several processes on one database can do to each other: the second lines of defence
 * of `messages/`, with the locks of aggregates. Each test runs two works at the same time under
 * different aggregates, and would fail without the condition it is about.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { messages } from '../../src/messages/index.ts';
import {
  claimDue,
  type Delivery,
  deleteDelivery,
  failDelivery,
  insertDelivery,
  postpone,
  setTarget,
} from '../../src/messages/queue-store.ts';
import { readPriorResults } from '../../src/messages/received-store.ts';
import {
  deleteExpiredRecords,
  deleteExpiredResults,
  deleteExpiredTexts,
} from '../../src/messages/retention-store.ts';
import {
  assignSequence,
  endResult,
  insertRecord,
  insertResult,
  readCertificate,
  readEnvelope,
  storeCertificate,
  storeEnvelope,
} from '../../src/messages/store.ts';
import { migrate } from '../../src/storage/migrations.ts';
import type { PostgresStorage } from '../../src/storage/postgres/storage.ts';
import type { Storage, Writer } from '../../src/storage/types.ts';
import { TestPostgres } from '../support/postgres.ts';
import { ask, askUntil, open } from '../support/postgres-engine.ts';

let server: TestPostgres;
let url: string;
let one: PostgresStorage;
let other: PostgresStorage;

beforeAll(async () => {
  server = await TestPostgres.start({ durable: false });
});
afterAll(() => server[Symbol.asyncDispose]());

beforeEach(async () => {
  url = await server.createDatabase();
  one = await open(url);
  other = await open(url);
  await migrate(one, messages.migrations, 0);
  return async () => {
    await one[Symbol.asyncDispose]();
    await other[Symbol.asyncDispose]();
  };
});

const key = { sender: 'alice', messageId: 'm' };
const result = {
  request: 'digest',
  acceptedAt: 0,
  status: 'delivering',
  keepUntil: 10,
  received: undefined,
} as const;

const delivery = (messageId: string) => ({
  sender: 'alice',
  messageId,
  recipient: 'bob',
  envelopeId: 'e',
  certificateId: 'c',
  recipientBoxes: '[]',
  credential: undefined,
  deadline: 100,
  destination: 'x',
});

const claimOf = (batchSize: number, now = 0) => ({
  ...{ destination: 'x', now, leaseUntil: now + 120, batchSize, deadlineBy: 1_000 },
  isHome: () => Promise.resolve(false),
});

const next = (at: number) => ({ at, destination: 'x', target: undefined, wakeAfter: at });

/** The transaction, with an action after its first statement. */
function interrupted(tx: Writer, happening: () => Promise<unknown>): Writer {
  let first: Promise<unknown> | undefined;
  const then = async <T>(answer: Promise<T>): Promise<T> => {
    const value = await answer;
    first ??= happening();
    await first;
    return value;
  };
  return {
    get: (sql, ...values) => then(tx.get(sql, ...values)),
    all: (sql, ...values) => then(tx.all(sql, ...values)),
    run: (sql, ...values) => then(tx.run(sql, ...values)),
  };
}

/** Holds what a work has written back until another work waits for it. */
async function whileWaitedFor(
  write: (tx: Writer) => Promise<unknown>,
  wait: () => Promise<unknown>,
) {
  const written = Promise.withResolvers<void>();
  const waiting = Promise.withResolvers<void>();
  const first = one.write('first', async (tx) => {
    await write(tx);
    written.resolve();
    await waiting.promise;
  });
  await written.promise;
  const second = wait();
  await askUntil(
    url,
    `SELECT 1 FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event = 'transactionid'`,
    (rows) => rows.length > 0,
  );
  waiting.resolve();
  await first;
  await second;
}

describe('a delivery', () => {
  test('that is put off while it is being claimed is not claimed', async () => {
    await one.write('alice', (tx) => insertDelivery(tx, delivery('m'), 0));
    const later = () =>
      other.write('account:alice', (tx) => postpone(tx, { ...key, leaseUntil: 0 }, next(50)));
    const claimed = await one.write('queue', (tx) => claimDue(interrupted(tx, later), claimOf(10)));
    expect(claimed).toEqual([]);
    expect(await ask(url, 'SELECT next_attempt_at::int AS at FROM deliveries')).toEqual([
      { at: 50 },
    ]);
  });

  test('that ends while it is being claimed is not claimed', async () => {
    await one.write('alice', (tx) => insertDelivery(tx, delivery('m'), 0));
    const claimed = await one.write('queue', (tx) =>
      claimDue(
        interrupted(tx, () =>
          other.write('account:alice', (writer) => deleteDelivery(writer, key)),
        ),
        claimOf(10),
      ),
    );
    expect(claimed).toEqual([]);
  });

  test('is claimed by one of several processes that claim at the same time', async () => {
    const ids = Array.from({ length: 40 }, (_, index) => `m${index}`);
    await one.write('alice', async (tx) => {
      for (const id of ids) await insertDelivery(tx, delivery(id), 0);
    });
    const claims = Array.from({ length: 8 }, (_, index) =>
      (index % 2 === 0 ? one : other).write(`queue:${index}`, (tx) => claimDue(tx, claimOf(15))),
    );
    const claimed = (await Promise.all(claims)).flat().map(({ messageId }) => messageId);
    expect(new Set(claimed).size).toBe(claimed.length);
    expect(claimed.length).toBeGreaterThanOrEqual(15);
  });

  test('is bound to no relay by a process whose lease is over', async () => {
    await one.write('alice', (tx) => insertDelivery(tx, delivery('m'), 0));
    const claim = async (storage: Storage, now: number) => {
      const lease = claimOf(1, now);
      return (await storage.write('queue', (tx) => claimDue(tx, lease)))[0] as Delivery;
    };
    const [late, valid] = [await claim(one, 0), await claim(other, 120)];
    expect(await one.write('late', (tx) => setTarget(tx, late, 'x'))).toBe(false);
    await one.write('late', (tx) => postpone(tx, late, { ...next(130), target: 'x' }));
    expect(await one.write('late', (tx) => failDelivery(tx, late))).toBe(false);
    expect(await other.write('valid', (tx) => setTarget(tx, valid, 'y'))).toBe(true);
    const sql = 'SELECT next_attempt_at::int AS at, target FROM deliveries';
    expect(await ask(url, sql)).toEqual([{ at: 240, target: 'y' }]);
    expect(await other.write('valid', (tx) => failDelivery(tx, valid))).toBe(true);
  });

  test('is ended by one of several processes', async () => {
    await one.write('alice', (tx) => insertDelivery(tx, delivery('m'), 0));
    const ends = [one, other, one, other].map((storage, index) =>
      storage.write(`end:${index}`, (tx) => deleteDelivery(tx, key)),
    );
    expect((await Promise.all(ends)).filter((isMine) => isMine)).toEqual([true]);
  });
});

describe('a result', () => {
  test('a final result does not change if it is ended a second time', async () => {
    await one.write('alice', (tx) => tx.run(...insertResult(key, result)));
    await whileWaitedFor(
      (tx) => endResult(tx, key),
      () =>
        other.write('late', (tx) =>
          endResult(tx, key, { error: { code: 'message_expired', message: '' } }),
        ),
    );
    const stored = (await one.read((tx) => readPriorResults(tx, key))).sent;
    expect(stored).toMatchObject({ status: 'target_accepted' });
    expect(stored?.error).toBeUndefined();
  });

  test('of a delivery that is not over is kept past its time', async () => {
    await one.write('alice', (tx) => tx.run(...insertResult(key, result)));
    expect(await other.write('retention', (tx) => deleteExpiredResults(tx, 20, 10))).toBe(0);
    await one.write('alice', (tx) => endResult(tx, key));
    expect(await other.write('retention', (tx) => deleteExpiredResults(tx, 20, 10))).toBe(1);
  });
});

describe('what is kept longer while it is being removed stays', () => {
  const envelope = { id: 'e', text: '{}', bytes: 2 };
  const certificate = { id: 'c', deviceId: 'd', text: '{}' };

  test('envelopes', async () => {
    await one.write('alice', (tx) => tx.run(...storeEnvelope(envelope, 10)));
    await whileWaitedFor(
      (tx) => tx.run(...storeEnvelope(envelope, 30)),
      () => other.write('retention', (tx) => deleteExpiredTexts(tx, 20, 10)),
    );
    expect(await one.read((tx) => readEnvelope(tx, 'e'))).toBe('{}');
  });

  test('certificates', async () => {
    await one.write('alice', (tx) => tx.run(...storeCertificate(certificate, 10)));
    await whileWaitedFor(
      (tx) => tx.run(...storeCertificate(certificate, 30)),
      () => other.write('retention', (tx) => deleteExpiredTexts(tx, 20, 10)),
    );
    expect(await one.read((tx) => readCertificate(tx, 'c'))).toEqual(certificate);
  });

  test('and what is removed while it is kept longer is there again', async () => {
    await one.write('alice', (tx) => tx.run(...storeEnvelope(envelope, 10)));
    await whileWaitedFor(
      (tx) => deleteExpiredTexts(tx, 20, 10),
      () => other.write('alice', (tx) => tx.run(...storeEnvelope(envelope, 30))),
    );
    expect(await one.read((tx) => readEnvelope(tx, 'e'))).toBe('{}');
  });
});

test('records removed by several processes at once: all gone, the gap is the highest', async () => {
  for (let count = 0; count < 30; count += 1) {
    await one.write('account:bob', async (tx) => {
      const row = await tx.get(...assignSequence('bob'));
      const record = {
        ...{ account: 'bob', sequence: Number(row?.head), acceptedAt: 0, keepUntil: 10 + count },
        ...{ envelopeId: 'e', certificateId: 'c', bytes: 2, boxes: new Map([['phone', '{}']]) },
      };
      for (const statement of insertRecord(record)) await tx.run(...statement);
    });
  }
  // The second run looks before the first one has removed anything, and goes less far.
  await one.write('retention:1', (tx) =>
    deleteExpiredRecords(
      interrupted(tx, () =>
        other.write('retention:2', (late) => deleteExpiredRecords(late, 35, 100)),
      ),
      20,
      100,
    ),
  );
  expect(await ask(url, 'SELECT sequence::int FROM timeline_gaps')).toEqual([{ sequence: 25 }]);
  const rows = await ask(url, 'SELECT count(*)::int AS count FROM timeline_records');
  expect(rows).toEqual([{ count: 4 }]);
});

test('sequences: each is assigned once, without gaps, by any process', async () => {
  const taken = await Promise.all(
    Array.from({ length: 100 }, (_, index) =>
      // Not even the aggregate keeps these apart.
      (index % 2 === 0 ? one : other).write(`other:${index}`, (tx) =>
        tx.get(...assignSequence('bob')),
      ),
    ),
  );
  expect(taken.map((row) => Number(row?.head)).sort((a, b) => a - b)).toEqual(
    taken.map((_, index) => index),
  );
});
