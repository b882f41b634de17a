/** Leaves what was assigned after a backup unused: the steps of `groups` in `StoredModule.restored`. */
import { createGroupSecret, encodeBase64url } from '@posthouse/protocol';
import type { RestoredParts, RestoredStep } from '../storage/restored.ts';
import type { Writer } from '../storage/types.ts';
import { insertEvent } from './chain/event-store.ts';
import { insertLosses } from './chain/loss-store.ts';

/** Groups whose secrets are renewed between two reads. */
const batchSize = 500;

export const restored: readonly RestoredStep[] = [
  insertLosses,
  // The owner may have finished a staged rotation after the backup, or prepared it with other boxes.
  'UPDATE group_stagings SET expires_at = 0 WHERE cleared = 0',
  beginEpochs,
];

/**
 * Raises sequences, and begins a new epoch in each active group, far above those that were given after the
 * backup: members have other relay secrets for their numbers (05 §7.2).
 */
async function beginEpochs(tx: Writer, parts: RestoredParts): Promise<void> {
  const { now, random, service, step } = parts;
  const last = Number.MAX_SAFE_INTEGER - step;
  await tx.run('UPDATE groups SET sequence = sequence + ? WHERE sequence <= ?', step, last);
  await tx.run(
    `UPDATE group_epochs SET superseded = 1
      WHERE superseded = 0 AND group_id IN
        (SELECT group_id FROM groups WHERE status = 'active' AND epoch <= ?)`,
    last,
  );
  const payload = JSON.stringify({ $type: `${service}.group.key.rotated` });
  for (let after = ''; ; ) {
    const groups = await tx.all<{
      group_id: string;
      sequence: number;
      epoch: number;
      box_set: number;
    }>(
      `SELECT group_id, sequence, epoch, box_set FROM groups
        WHERE group_id > ? AND status = 'active' AND epoch <= ? ORDER BY group_id LIMIT ?`,
      after,
      last,
      batchSize,
    );
    for (const { group_id: groupId, sequence, epoch, box_set: boxSet } of groups) {
      const event = { sequence, epoch: epoch + step, acceptedAt: now, payload };
      await insertEvent(tx, groupId, { event, signer: undefined });
      await tx.run(
        `INSERT INTO group_epochs (group_id, epoch, relay_secret, box_set, keep_until, superseded)
          VALUES (?, ?, ?, ?, ?, 0)`,
        groupId,
        event.epoch,
        encodeBase64url(createGroupSecret(random)),
        boxSet,
        now,
      );
      await tx.run('UPDATE groups SET epoch = ? WHERE group_id = ?', event.epoch, groupId);
    }
    const next = groups.at(-1)?.group_id;
    if (next === undefined) return;
    after = next;
  }
}
