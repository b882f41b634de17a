import type { Duplex } from 'node:stream';
import type { RelayContext } from '../context.ts';
import { payerKey } from '../dispatch/allowances.ts';
import type { ByteOwner } from './byte-ledger.ts';
import { Counts } from './counts.ts';

/**
 * Answers that are given late, to callers that go on although they owe (02 §18). Of one owner only so many wait: those of
 * a proxy's client would take all of the proxy's connections.
 */
export class LateAnswers implements Disposable {
  readonly #context: Pick<RelayContext, 'clock' | 'limits'>;
  readonly #ofOwner = new Counts();
  /** What ends each wait. */
  readonly #waits = new Set<() => void>();
  #isOver = false;

  constructor(context: Pick<RelayContext, 'clock' | 'limits'>) {
    this.#context = context;
  }

  /**
   * Waits before an answer, as long as its connection is open and the relay does not stop.
   *
   * @returns whether the owner had room for it; otherwise the answer is the last one of its connection
   */
  async wait(owner: ByteOwner, milliseconds: number, connection: Duplex): Promise<boolean> {
    const { clock, limits } = this.#context;
    const key = payerKey(owner);
    if (this.#isOver) return true;
    if (this.#ofOwner.get(key) >= limits.lateAnswers) return false;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#ofOwner.add(key, 1);
    this.#waits.add(resolve);
    connection.once('close', resolve);
    using _timer = clock.after(milliseconds, resolve);
    await promise;
    connection.off('close', resolve);
    this.#waits.delete(resolve);
    this.#ofOwner.add(key, -1);
    return true;
  }

  /** Ends all waits: the relay stops. */
  [Symbol.dispose](): void {
    this.#isOver = true;
    for (const end of this.#waits) end();
  }
}
