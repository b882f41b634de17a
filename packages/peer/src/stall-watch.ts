import { PeerError } from './errors.ts';
import type { PeerStream } from './peer-stream.ts';

/** Resets streams of which nothing has moved between two checks, though it is the peer's turn. */
export class StallWatch {
  readonly #seen = new Map<PeerStream, PeerStream['awaited']>();

  /** Resets the streams that wait for the same bytes of the peer as at the last check. */
  check(streams: Iterable<PeerStream>): void {
    const all = [...streams];
    for (const stream of all) {
      const { sent, received } = stream.awaited;
      const before = this.#seen.get(stream);
      const isStalled = sent !== undefined && sent === before?.sent;
      if (isStalled || (received !== undefined && received === before?.received)) {
        stream.reset(new PeerError('timeout', 'nothing of the stream has moved'));
      }
    }
    this.clear();
    for (const stream of all) if (!stream.isClosed) this.#seen.set(stream, stream.awaited);
  }

  clear(): void {
    this.#seen.clear();
  }
}
