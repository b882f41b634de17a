/** Leaves the sequences that were assigned after a backup unused: statements in `StoredModule.restored`. */
import { restoredStep } from '../storage/restored.ts';

const last = Number.MAX_SAFE_INTEGER - restoredStep;

export const restored: readonly string[] = [
  `UPDATE timeline_heads SET head = head + ${restoredStep} WHERE head <= ${last}`,
  // Timelines that began after the backup, of accounts that the backup has or does not have.
  `INSERT INTO timeline_floor (slot, floor) VALUES (1, ${restoredStep})
    ON CONFLICT (slot) DO UPDATE SET floor = timeline_floor.floor + ${restoredStep}
      WHERE timeline_floor.floor <= ${last}`,
  `INSERT INTO timeline_heads (account, head)
    SELECT s.account, f.floor - 1 FROM device_states s CROSS JOIN timeline_floor f
      WHERE s.account NOT IN (SELECT account FROM timeline_heads)`,
];
