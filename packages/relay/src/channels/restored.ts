/** Leaves the sequences that were assigned after a backup unused: statements in `StoredModule.restored`. */
import { restoredStep } from '../storage/restored.ts';

export const restored: readonly string[] = [
  `UPDATE channels SET head = head + ${restoredStep}
    WHERE head <= ${Number.MAX_SAFE_INTEGER - restoredStep}`,
];
