import type { PeerStream } from '@posthouse/peer';
import type { Clock } from '../context.ts';

/**
 * Ends a stream whose answer was read: this side at once, and both if the peer sends more or does
 * not end its side in time. Resolves when the stream is closed.
 *
 * @param milliseconds that the peer has
 */
export async function finishStream(
  stream: PeerStream,
  clock: Pick<Clock, 'after'>,
  milliseconds: number,
): Promise<void> {
  stream.end();
  const timer = clock.after(milliseconds, () => stream.reset());
  try {
    if ((await stream.readFrame()) !== undefined) stream.reset();
  } catch {
    stream.reset();
  } finally {
    timer[Symbol.dispose]();
  }
}
