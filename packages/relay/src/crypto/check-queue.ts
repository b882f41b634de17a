import { ProtocolError } from '@posthouse/protocol';
import type { SignatureCheck } from '@posthouse/protocol/crypto';
import { FairSlots } from '../fair-slots.ts';
import type { SignatureEngine } from './engine.ts';

export interface CheckQueueLimits {
  /** Verifications under way at once. */
  readonly parallel: number;
  /**
   * Waiting verifications. A payer may add some while fewer of its own wait than there is room left:
   * a payer with many is refused first, and leaves room to the others.
   */
  readonly waiting: number;
}

/** Hands verifications to an engine, a limited number at once, in rotation of those who pay. */
export class CheckQueue {
  readonly #engine: SignatureEngine;
  readonly #waiting: number;
  readonly #slots: FairSlots;

  constructor(engine: SignatureEngine, { parallel, waiting }: CheckQueueLimits) {
    this.#engine = engine;
    this.#waiting = waiting;
    this.#slots = new FairSlots(parallel);
  }

  /**
   * Verifies when it is the payer's turn; what {@link SignatureEngine.verify} returns.
   *
   * @throws ProtocolError `temporarily_unavailable` if too many of the payer's wait
   */
  async verify(check: SignatureCheck, payer: string): Promise<boolean | undefined> {
    this.#requireRoom(payer);
    const turn = this.#slots.take(payer);
    if (turn !== undefined) await turn;
    try {
      return await this.#engine.verify(check);
    } finally {
      this.#slots.give();
    }
  }

  #requireRoom(payer: string): void {
    if (!this.#slots.isFull) return;
    const room = this.#waiting - this.#slots.waiting;
    if (this.#slots.waitingOf(payer) < room) return;
    throw new ProtocolError(
      'temporarily_unavailable',
      'too many signatures to verify: try again later',
    );
  }
}
