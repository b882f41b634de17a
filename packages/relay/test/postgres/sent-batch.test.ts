/** Messages stored in batches on PostgreSQL (decision record 0027). */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { sentMessages } from '../../src/messages/append-sent.ts';
import { seed } from '../support/chance.ts';
import { ask, open } from '../support/postgres-engine.ts';
import { EnginePair } from './engine-pair.ts';
import { sentMessage as message, type Name, names, stored } from './message-inputs.ts';

const engines = new EnginePair(sentMessages, stored);

const name = fc.constantFrom(...names);
const sent = fc.record({
  ...{ from: name, to: name },
  id: fc.integer({ min: 0, max: 12 }),
  boxes: fc.integer({ min: 1, max: 3 }),
  own: fc.integer({ min: 0, max: 2 }),
  text: fc.string({ unit: 'binary', maxLength: 12 }).map((text) => text.replaceAll('\0', '')),
  at: fc.integer({ min: 100, max: 103 }),
  hasCertificate: fc.boolean(),
});

describe('04 §12, §15, 0027: messages in batches', () => {
  test('store what each alone stores, in the same order, and repeats store nothing', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(sent, { maxLength: 40 }), { maxLength: 4 }),
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
        from: names[index % 4] as Name,
        to: names[(index * 7) % 3] as Name,
        id: index % 450,
        own: index % 2,
      }),
    );
    const outputs = await Promise.all(
      all.map((one, index) =>
        (index % 2 === 0 ? engines.postgres : other).append(sentMessages, one),
      ),
    );
    const accepted = outputs.filter((output) => output !== undefined);
    const [counts] = await ask(
      engines.url,
      `SELECT (SELECT count(*) FROM sent_results) AS results,
        (SELECT count(*) FROM message_envelopes) AS envelopes,
        (SELECT sum(head + 1) FROM timeline_heads) AS heads,
        (SELECT count(*) FROM timeline_records) AS records,
        (SELECT sum(top) FROM (SELECT max(sequence) + 1 AS top FROM timeline_records
          GROUP BY account) AS tops) AS dense`,
    );
    const records = String(accepted.flat().length);
    const results = String(accepted.length);
    expect(counts).toEqual({
      results,
      envelopes: results,
      heads: records,
      records,
      dense: records,
    });
    expect(new Set(all.map(({ key }) => `${key.sender} ${key.messageId}`)).size).toBe(
      accepted.length,
    );
  });
});

describe('0027: what another process has changed', () => {
  test.each([
    ['the route has a higher revision', 'UPDATE account_routes SET revision = 4'],
    ['the home is another relay', `UPDATE account_routes SET relay_id = 'there'`],
    ['the route is in conflict', 'UPDATE account_routes SET conflict = 1'],
    ['the route was given up', 'UPDATE account_routes SET held_until = 0'],
    ['the route is gone', 'DELETE FROM account_routes'],
    ['the device state has a higher revision', 'UPDATE device_states SET revision = 6'],
    ['the device state is gone', 'DELETE FROM device_states'],
    ['public discovery is off', 'UPDATE profiles SET public_discovery = 0'],
    ['the profile is gone', 'DELETE FROM profiles'],
  ])('%s: messages that rely on it are declined, others are not', async (_, sql) => {
    await using other = await open(engines.url);
    await other.write('account:ben', (tx) => tx.run(`${sql} WHERE account = 'ben'`));
    const outputs = await engines.append([
      message({ from: 'ann', to: 'cat', id: 1 }),
      message({ from: 'ann', to: 'ben', id: 2 }),
      message({ from: 'ben', to: 'ann', id: 3 }),
      message({ from: 'cat', to: 'ann', id: 4 }),
    ]);
    expect(outputs).toEqual([[0], undefined, undefined, [0]]);
    expect((await engines.rows()).sent_results).toHaveLength(2);
  });

  test('a profile without public discovery is as none', async () => {
    await ask(engines.url, `INSERT INTO profiles VALUES ('cat', 7, 0, 'p', 'c')`);
    expect(await engines.append([message({ from: 'ann', to: 'cat', id: 1 })])).toEqual([[0]]);
  });

  test('a message that `message.deliver` stored is declined', async () => {
    await ask(engines.url, `INSERT INTO received_results VALUES ('ann', 'm1', 'r', 'c', 1, 2)`);
    const outputs = await engines.append([
      message({ from: 'ann', to: 'ben', id: 1 }),
      message({ from: 'ann', to: 'ben', id: 2 }),
    ]);
    expect(outputs).toEqual([undefined, [0]]);
  });

  test('facts that this process has forgotten are declined', async () => {
    const outputs = await engines.append([
      message({ from: 'ann', to: 'ben', id: 1 }, ({ account }) => account !== 'ben'),
      message({ from: 'ann', to: 'cat', id: 2 }, ({ account }) => account !== 'ben'),
    ]);
    expect(outputs).toEqual([undefined, [0]]);
  });
});

test('04 §17.1: a timeline without a sequence left declines its messages and no others', async () => {
  await ask(
    engines.url,
    `INSERT INTO timeline_heads VALUES ('ben', ${Number.MAX_SAFE_INTEGER - 1})`,
  );
  const outputs = await engines.append([
    message({ from: 'ann', to: 'ben', id: 1 }),
    message({ from: 'ann', to: 'cat', id: 2 }),
    message({ from: 'ann', to: 'ben', id: 3 }),
    message({ from: 'cat', to: 'dan', id: 4 }),
  ]);
  expect(outputs).toEqual([[Number.MAX_SAFE_INTEGER], [0], undefined, [0]]);
});

test('0027: a batch has seven statements and the commit mark, whatever its size', async () => {
  const sent: string[] = [];
  await using counted = await open(engines.url, {
    faults: { beforeStatement: (sql) => sent.push(sql) },
  });
  sent.length = 0;
  const some = Array.from({ length: 128 }, (_, id) =>
    message({ from: 'ann', to: 'ben', id, own: 1 }),
  );
  await engines.append(some, counted);
  // Locks, results, heads, envelopes, certificates, records, boxes; the mark is not counted.
  expect(sent).toHaveLength(7);
});

test('0027: the statements of a batch use indexes, of 1 input and of 128', async () => {
  await engines.expectPlansWithIndexes((id) =>
    message({ from: 'ann', to: names[id % 4] as Name, id, own: 1 }),
  );
});
