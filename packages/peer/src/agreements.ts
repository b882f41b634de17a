import type { PeerClock } from './clock.ts';
import { PeerError } from './errors.ts';
import type { PeerStream } from './peer-stream.ts';

/**
 * The protocols that the peer of a connection has agreed on once: later streams do not wait for its
 * reply. Streams that are opened while the first one of a protocol waits for the reply wait too.
 */
export class Agreements {
  readonly #clock: PeerClock;
  readonly #time: number;
  readonly #agreed = new Set<string>();
  readonly #pending = new Map<string, Promise<void>>();

  /** @param time milliseconds that the peer has to reply */
  constructor(clock: PeerClock, time: number) {
    this.#clock = clock;
    this.#time = time;
  }

  /**
   * The reply that another stream of the protocol waits for; after a refusal each stream asks for
   * itself.
   */
  pending(protocol: string): Promise<void> | undefined {
    return this.#pending.get(protocol);
  }

  /**
   * Waits for the peer's agreement on a stream, unless the protocol is agreed on.
   *
   * @throws PeerError `not_supported`, `reset` or `timeout`
   */
  async require(stream: PeerStream): Promise<void> {
    const { protocol } = stream;
    if (this.#agreed.has(protocol)) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#pending.set(protocol, promise);
    using _timer = this.#clock.after(this.#time, () =>
      stream.reset(new PeerError('timeout', `no agreement on ${protocol}`)),
    );
    try {
      await stream.agreed;
      this.#agreed.add(protocol);
    } finally {
      this.#pending.delete(protocol);
      resolve();
    }
  }
}
