/** Sent messages and those of other relays in the same batches on PostgreSQL (decision record 0027). */
import { beforeEach, describe, expect, test } from 'vitest';
import { receivedMessages } from '../../src/messages/append-received.ts';
import { sentMessages } from '../../src/messages/append-sent.ts';
import type { PostgresStorage } from '../../src/storage/postgres/storage.ts';
import { ask, askUntil, open, Told } from '../support/postgres-engine.ts';
import { EnginePair } from './engine-pair.ts';
import { type Name, names, receivedMessage, sentMessage, stored } from './message-inputs.ts';

const engines = new EnginePair(sentMessages, stored);

const send = (storage: PostgresStorage, to: Name, id: number) =>
  storage.append(sentMessages, sentMessage({ from: 'ann', to, id }));
const receive = (storage: PostgresStorage, to: Name, id: number) =>
  storage.append(receivedMessages, receivedMessage({ to, id }));

describe('0027: sent and received messages in one batch', () => {
  test('are stored as each alone is, and their timelines have one order', async () => {
    const outputs = await Promise.all([
      send(engines.postgres, 'ben', 1),
      receive(engines.postgres, 'ben', 2),
      send(engines.postgres, 'cat', 3),
      receive(engines.postgres, 'ben', 2),
    ]);
    expect(outputs).toEqual([[1], [0], [0], undefined]);
    await engines.sqlite.append(receivedMessages, receivedMessage({ to: 'ben', id: 2 }));
    await engines.append(
      [
        sentMessage({ from: 'ann', to: 'ben', id: 1 }),
        sentMessage({ from: 'ann', to: 'cat', id: 3 }),
      ],
      engines.sqlite,
    );
    await engines.expectSameRows();
  });

  test('move their heads in one statement, so batches of two processes cannot deadlock', async () => {
    const sent: string[] = [];
    await using counted = await open(engines.url, {
      faults: { beforeStatement: (sql) => sent.push(sql) },
    });
    sent.length = 0;
    await Promise.all([send(counted, 'ben', 1), receive(counted, 'cat', 2)]);
    expect(sent.filter((sql) => sql.includes('INTO timeline_heads'))).toHaveLength(1);
  });

  test('of two processes for the same recipients do not deadlock', async () => {
    const told = new Told();
    await using one = await open(engines.url, { observer: told });
    await using two = await open(engines.url, { observer: told });
    await Promise.all(names.map((to, id) => receive(one, to, id)));
    const begun = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    const holding = engines.postgres.write('relay', async (tx) => {
      await tx.run(`UPDATE timeline_heads SET head = head WHERE account = 'dan'`);
      begun.resolve();
      await released.promise;
    });
    await begun.promise;
    // Each waits for the last head of what it received; the first one then sends to `ben`.
    const waiting = (count: number) =>
      askUntil(
        engines.url,
        'SELECT 1 FROM pg_locks WHERE NOT granted',
        ({ length }) => length === count,
      );
    const first = [receive(one, 'ann', 10), receive(one, 'dan', 11), send(one, 'ben', 12)];
    await waiting(1);
    const second = [receive(two, 'ben', 13), receive(two, 'dan', 14)];
    await waiting(2);
    released.resolve();
    await holding;
    expect(await Promise.all([...first, ...second])).not.toContain(undefined);
    expect(told.events).toEqual([]);
  });
});

describe('0027: facts of an account are forgotten if another process has changed them', () => {
  let seen: string[];
  beforeEach(() => {
    seen = [];
    engines.postgres.watch({
      begins: (aggregates) => seen.push(...aggregates),
      ended: () => {},
      changed: () => {},
    });
  });

  test.each([
    ['sent', () => send(engines.postgres, 'ben', 1)],
    ['received', () => receive(engines.postgres, 'ben', 1)],
  ])('by a message %s to it, and those of the other account are not', async (_, append) => {
    await ask(engines.url, `UPDATE device_states SET revision = 6 WHERE account = 'ben'`);
    expect(await append()).toBeUndefined();
    expect(seen).toEqual(['account:ben']);
  });

  test.each([
    ['sent', () => send(engines.postgres, 'ben', 1)],
    ['received', () => receive(engines.postgres, 'ben', 1)],
  ])('a repeat of a message %s is declined, and nothing is forgotten', async (_, append) => {
    expect(await append()).toEqual([0]);
    expect(await append()).toBeUndefined();
    expect(seen).toEqual([]);
  });
});
