/** Messages of other relays stored in batches on PostgreSQL (decision record 0027). */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { receivedMessages } from '../../src/messages/append-received.ts';
import { seed } from '../support/chance.ts';
import { ask, open } from '../support/postgres-engine.ts';
import { EnginePair } from './engine-pair.ts';
import { receivedMessage as message, type Name, senders, stored } from './message-inputs.ts';

const engines = new EnginePair(receivedMessages, stored);
const recipients = ['ann', 'ben', 'cat'] as const;

const received = fc.record({
  ...{ from: fc.constantFrom(...senders), to: fc.constantFrom(...recipients) },
  id: fc.integer({ min: 0, max: 12 }),
  boxes: fc.integer({ min: 1, max: 3 }),
  text: fc.string({ unit: 'binary', maxLength: 12 }).map((text) => text.replaceAll('\0', '')),
  at: fc.integer({ min: 100, max: 103 }),
});

describe('07 §C8, 0027: messages of other relays in batches', () => {
  test('store what each alone stores, in the same order, and repeats store nothing', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(received, { maxLength: 40 }), { maxLength: 4 }),
        async (all) => {
          await engines.reset();
          for (const batch of all) await engines.appendAlike(batch.map((one) => message(one)));
          await engines.expectSameRows();
        },
      ),
      { seed, numRuns: 40, endOnFailure: true },
    );
  });

  test('of several processes: each is stored once, sequences have no gap', async () => {
    await using other = await open(engines.url);
    const all = Array.from({ length: 600 }, (_, index) =>
      message({
        from: senders[index % 2] as string,
        to: recipients[index % 3] as Name,
        id: index % 450,
      }),
    );
    const outputs = await Promise.all(
      all.map((one, index) =>
        (index % 2 === 0 ? engines.postgres : other).append(receivedMessages, one),
      ),
    );
    const accepted = outputs.filter((output) => output !== undefined).length;
    expect(accepted).toBe(new Set(all.map(({ key }) => `${key.sender} ${key.messageId}`)).size);
    const [counts] = await ask(
      engines.url,
      `SELECT (SELECT count(*) FROM received_results) AS results,
        (SELECT sum(head + 1) FROM timeline_heads) AS heads,
        (SELECT count(*) FROM timeline_records) AS records`,
    );
    const count = String(accepted);
    expect(counts).toEqual({ results: count, heads: count, records: count });
  });
});

describe('0027: what another process has changed', () => {
  test.each([
    ['the route has a higher revision', 'UPDATE account_routes SET revision = 4'],
    ['the home is another relay', `UPDATE account_routes SET relay_id = 'there'`],
    ['the route is in conflict', 'UPDATE account_routes SET conflict = 1'],
    ['the route was given up', 'UPDATE account_routes SET held_until = 0'],
    ['the device state has a higher revision', 'UPDATE device_states SET revision = 6'],
  ])('%s: messages for the account are declined, others are not', async (_, sql) => {
    await using other = await open(engines.url);
    await other.write('account:ben', (tx) => tx.run(`${sql} WHERE account = 'ben'`));
    const outputs = await engines.append([
      message({ to: 'cat', id: 1 }),
      message({ to: 'ben', id: 2 }),
      message({ to: 'ann', id: 3 }),
    ]);
    expect(outputs).toEqual([[0], undefined, [0]]);
  });

  test('a sender has come home here: its messages are declined, as it may send them here', async () => {
    await using other = await open(engines.url);
    await other.write('account:xin', (tx) =>
      tx.run(`UPDATE account_routes SET relay_id = 'here' WHERE account = 'xin'`),
    );
    const outputs = await engines.append([
      message({ from: 'xin', to: 'ann', id: 1 }),
      message({ from: 'yan', to: 'ann', id: 2 }),
    ]);
    expect(outputs).toEqual([undefined, [0]]);
  });

  test('a message that `message.send` stored is declined', async () => {
    await ask(
      engines.url,
      `INSERT INTO sent_results (sender, message_id, request, accepted_at, keep_until, status)
        VALUES ('xin', 'm1', 'r', 1, 2, 'target_accepted')`,
    );
    const outputs = await engines.append([
      message({ to: 'ann', id: 1 }),
      message({ to: 'ann', id: 2 }),
    ]);
    expect(outputs).toEqual([undefined, [0]]);
  });

  test('facts that this process has forgotten are declined', async () => {
    const outputs = await engines.append([
      message({ to: 'ben', id: 1 }, () => false),
      message({ to: 'cat', id: 2 }),
    ]);
    expect(outputs).toEqual([undefined, [0]]);
  });
});

test('04 §17.1: a timeline without a sequence left declines its messages and no others', async () => {
  await ask(engines.url, `INSERT INTO timeline_heads VALUES ('ben', ${Number.MAX_SAFE_INTEGER})`);
  const outputs = await engines.append([
    message({ to: 'ben', id: 1 }),
    message({ to: 'cat', id: 2 }),
  ]);
  expect(outputs).toEqual([undefined, [0]]);
});

test('0027: a batch has seven statements and the commit mark, whatever its size', async () => {
  const sent: string[] = [];
  await using counted = await open(engines.url, {
    faults: { beforeStatement: (sql) => sent.push(sql) },
  });
  sent.length = 0;
  const some = Array.from({ length: 128 }, (_, id) => message({ to: 'ben', id }));
  await engines.append(some, counted);
  // Locks, results, heads, envelopes, certificates, records, boxes; the mark is not counted.
  expect(sent).toHaveLength(7);
});

test('0027: the statements of a batch use indexes, of 1 input and of 128', async () => {
  await engines.expectPlansWithIndexes((id) => message({ to: recipients[id % 3] as Name, id }));
});
