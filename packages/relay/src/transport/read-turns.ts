import { Rotation } from '../rotation.ts';

/**
 * Bytes of large bodies that are read in one turn of the event loop, about: less than a millisecond of
 * TLS. Node would read up to 2 MiB of each connection in a turn.
 */
const bytesOfTurn = 262_144;
/** Bytes that one read takes from the system, at most. */
export const bytesOfRead = 65_536;

interface Waiting {
  readonly bytes: number;
  readonly go: () => void;
}

/**
 * Divides the reading of large bodies over turns of the event loop: after a number of bytes in one turn,
 * their connections are read in the next ones, a few in each, in rotation of their owners (0019).
 */
export class ReadTurns {
  readonly #waiting = new Rotation<Waiting>();
  /** Bytes that were read in this turn. */
  #read = 0;
  #isScheduled = false;

  /** Counts bytes that were read; returns whether the turn is full. */
  count(bytes: number): boolean {
    this.#read += bytes;
    this.#schedule();
    return this.#read >= bytesOfTurn;
  }

  /** Resolves in a later turn, in which the owner may read or copy so many bytes. */
  take(owner: string, bytes: number = bytesOfRead): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(owner, { bytes, go: resolve });
    this.#schedule();
    return promise;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#read = 0;
      let left = bytesOfTurn;
      while (left > 0 && !this.#waiting.isEmpty) {
        const next = this.#waiting.take();
        left -= next?.bytes ?? 0;
        next?.go();
      }
      if (!this.#waiting.isEmpty) this.#schedule();
    });
  }
}
