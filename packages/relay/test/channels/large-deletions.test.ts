import { expect, test } from 'vitest';
import { deletePosts } from '../../src/channels/retention-store.ts';
import { largeRows } from '../../src/storage/in-lists.ts';
import { deletionsOf } from '../support/deletions.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const relay = inProcessRelay();

test('02 §18: a statement deletes few expired posts, and does not read them', async () => {
  const sequences = Array.from({ length: 2 * largeRows + 1 }, (_, index) => index);
  await relay.context.storage.write('channel:one', async (tx) => {
    for (const sequence of sequences) {
      await tx.run(
        `INSERT INTO channel_posts (channel_id, sequence, account, message_id, digest, status,
          keep_until, clear_after) VALUES ('one', ?, 'ann', ?, 'digest', 'readable', 9, 9)`,
        sequence,
        `message ${sequence}`,
      );
      await tx.run(
        `INSERT INTO channel_events (channel_id, sequence, kind, descriptor_rev, accepted_at,
          keep_until, signer_device_id, bytes, payload)
          VALUES ('one', ?, 'post', 1, 0, 9, 'phone', 4, 'text')`,
        sequence,
      );
    }
  });
  let deleted: number | undefined;
  const found = await deletionsOf(relay, async (tx) => {
    deleted = await deletePosts(tx, 'one', { sequences, now: 9 });
  });
  expect(found).toEqual({ most: largeRows, reading: [] });
  expect(deleted).toBe(sequences.length);
  const left = await relay.context.storage.read((tx) => tx.all('SELECT 1 FROM channel_events'));
  expect(left).toEqual([]);
});
