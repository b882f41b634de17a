/** Leaves the sequences that were assigned after a backup unused: the steps in `StoredModule.restored`. */
import type { RestoredStep } from '../storage/restored.ts';

export const restored: readonly RestoredStep[] = [
  async (tx, { step }) => {
    const last = Number.MAX_SAFE_INTEGER - step;
    await tx.run('UPDATE timeline_heads SET head = head + ? WHERE head <= ?', step, last);
    // Timelines that began after the backup, of accounts that the backup has or does not have.
    await tx.run(
      `INSERT INTO timeline_floor (slot, floor) VALUES (1, ?)
        ON CONFLICT (slot) DO UPDATE SET floor = timeline_floor.floor + excluded.floor
          WHERE timeline_floor.floor <= ?`,
      step,
      last,
    );
  },
  `INSERT INTO timeline_heads (account, head)
    SELECT s.account, f.floor - 1 FROM device_states s CROSS JOIN timeline_floor f
      WHERE s.account NOT IN (SELECT account FROM timeline_heads)`,
];
