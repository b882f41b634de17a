import type { RelayContext } from '../context.ts';
import type { PeerConnections } from './connections.ts';
import { changesJobName } from './jobs.ts';

/**
 * Ends connections when the operator's blocks change, until disposed of: those from blocked addresses
 * at once, those of blocked relays when the job has read the list (02 §18).
 */
export function endBlocked(
  { blocks, jobs }: Pick<RelayContext, 'blocks' | 'jobs'>,
  connections: Pick<PeerConnections, 'closeBlocked'>,
): Disposable {
  return blocks.onChange(() => {
    connections.closeBlocked();
    jobs.wake(changesJobName);
  });
}
