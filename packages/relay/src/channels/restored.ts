/** Leaves the sequences that were assigned after a backup unused: the step in `StoredModule.restored`. */
import type { RestoredStep } from '../storage/restored.ts';

export const restored: readonly RestoredStep[] = [
  async (tx, { step }) => {
    await tx.run(
      'UPDATE channels SET head = head + ? WHERE head <= ?',
      step,
      Number.MAX_SAFE_INTEGER - step,
    );
  },
];
