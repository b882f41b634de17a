/** Leaves the sequences that were assigned after a backup unused: statements in `StoredModule.restored`. */
import { restoredStep } from '../storage/restored.ts';

export const restored: readonly string[] = [
  `UPDATE groups SET sequence = sequence + ${restoredStep}
    WHERE sequence <= ${Number.MAX_SAFE_INTEGER - restoredStep}`,
  // The owner may have finished a staged rotation after the backup, or prepared it with other boxes.
  'UPDATE group_stagings SET expires_at = 0 WHERE cleared = 0',
];
