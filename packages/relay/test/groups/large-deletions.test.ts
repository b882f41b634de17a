import { expect, test } from 'vitest';
import { deleteRequests } from '../../src/groups/requests/request-store.ts';
import { deleteExpiredMessages } from '../../src/groups/upkeep/retention-store.ts';
import { largeRows } from '../../src/storage/in-lists.ts';
import { deletionsOf } from '../support/deletions.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const relay = inProcessRelay();

const count = 2 * largeRows + 1;

test('02 §18: a statement deletes few applications, and does not read them', async () => {
  const accounts = Array.from({ length: count }, (_, index) => `account ${index}`);
  await relay.context.storage.write('group:any', async (tx) => {
    for (const account of accounts) {
      await tx.run(
        `INSERT INTO group_applications (group_id, account, invite_id, device_id, certificate_id,
          member_key, digest, accepted_at, bytes, application)
          VALUES ('one', ?, 'invite', 'device', 'certificate', 'key', 'digest', 0, 1, 'text')`,
        account,
      );
    }
  });
  const rejected = { kind: 'application', groupId: 'one', accounts } as const;
  const deleted: unknown[] = [];
  const found = await deletionsOf(relay, async (tx) =>
    deleted.push(...(await deleteRequests(tx, rejected))),
  );
  expect(found).toEqual({ most: largeRows, reading: [] });
  expect(deleted).toHaveLength(count);
});

test('02 §18: a statement deletes few expired messages, and does not read them', async () => {
  await relay.context.storage.write('group:any', async (tx) => {
    for (let sequence = 0; sequence < count; sequence += 1) {
      await tx.run(
        `INSERT INTO group_messages (group_id, sequence, epoch, accepted_at, keep_until,
          signer_device_id, certificate_id, bytes, payload)
          VALUES ('one', ?, 1, 0, 9, 'device', 'certificate', 4, 'text')`,
        sequence,
      );
    }
  });
  let deleted: number | undefined;
  const found = await deletionsOf(relay, async (tx) => {
    deleted = await deleteExpiredMessages(tx, 9, 200);
  });
  expect(found).toEqual({ most: largeRows, reading: [] });
  expect(deleted).toBe(count);
});
