import type { RelayContext } from '../context.ts';
import type { Eligibility } from './eligibility.ts';

/**
 * Shares the loss of a relay's admission with the other processes of this relay, until the result is
 * disposed. A relay that is still eligible is admitted again by its next connection.
 */
export function shareDrops(
  { bus }: Pick<RelayContext, 'bus'>,
  eligibility: Pick<Eligibility, 'drop' | 'onDrop'>,
): Disposable {
  const parts = new DisposableStack();
  let isReceiving = false;
  parts.use(
    eligibility.onDrop(({ relayId }) => {
      if (!isReceiving) bus.publish([{ kind: 'relay-dropped', relay: relayId }]);
    }),
  );
  parts.use(
    bus.subscribe((notice) => {
      if (notice.kind !== 'relay-dropped') return;
      isReceiving = true;
      eligibility.drop(notice.relay, 'other_process');
      isReceiving = false;
    }),
  );
  return parts;
}
