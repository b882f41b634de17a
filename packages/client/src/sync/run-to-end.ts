import type { AccountCore } from '../core.ts';
import type { AccountEvent } from '../events.ts';

/**
 * Runs a generator for its effects; its events are in the event log. A follower is woken for a group
 * that was joined.
 *
 * @returns what the generator returns
 */
export async function runToEnd<R>(
  { wakeSignal }: AccountCore,
  pages: AsyncGenerator<readonly AccountEvent[], R>,
): Promise<R> {
  for (;;) {
    const step = await pages.next();
    if (step.done === true) return step.value;
    if (step.value.some(({ kind }) => kind === 'group-joined')) wakeSignal.wake();
  }
}
