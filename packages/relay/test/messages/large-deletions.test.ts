import { expect, test } from 'vitest';
import { deleteExpiredTexts } from '../../src/messages/retention-store.ts';
import { largeRows } from '../../src/storage/in-lists.ts';
import { deletionsOf } from '../support/deletions.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const relay = inProcessRelay();

test('02 §18: a statement deletes few expired envelopes, and does not read them', async () => {
  const count = 2 * largeRows + 1;
  await relay.context.storage.write('messages', async (tx) => {
    for (let number = 0; number <= count; number += 1) {
      await tx.run(
        "INSERT INTO message_envelopes (envelope_id, keep_until, envelope) VALUES (?, ?, 'text')",
        `envelope ${number}`,
        number === count ? 10 : 9,
      );
    }
  });
  let deleted: number | undefined;
  const found = await deletionsOf(relay, async (tx) => {
    deleted = await deleteExpiredTexts(tx, 9, 200);
  });
  expect(found).toEqual({ most: largeRows, reading: [] });
  expect(deleted).toBe(count);
  const left = await relay.context.storage.read((tx) =>
    tx.all('SELECT envelope_id AS id FROM message_envelopes'),
  );
  expect(left).toEqual([{ id: `envelope ${count}` }]);
});
