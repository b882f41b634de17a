import type { Bus } from '../context.ts';
import type { AggregateKey } from '../storage/types.ts';

/** Aggregates whose changes connections are notified of. */
const announced = /^(?:account|group|channel):/;

/**
 * Publishes that notices of aggregates may have been lost, so that every process compares its
 * connections with storage. A relay of one process publishes after each of its commits: it need not.
 */
export function publishGap(
  bus: Bus | undefined,
  aggregates: readonly AggregateKey[] | 'any',
): void {
  if (bus?.isShared !== true) return;
  if (aggregates === 'any') {
    bus.publish([{ kind: 'gap' }]);
    return;
  }
  const found = aggregates.filter((key) => announced.test(key));
  if (found.length > 0) bus.publish([{ kind: 'gap', aggregates: found }]);
}
