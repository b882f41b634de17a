import { ProtocolError } from '@posthouse/protocol';
import type { SignatureCheck } from '@posthouse/protocol/crypto';
import { FairSlots } from '../fair-slots.ts';
import type { SignatureEngine } from './engine.ts';

export interface CheckQueueParts {
  /** Verifications under way at once. */
  readonly parallel: number;
  /**
   * Waiting verifications. A payer may add some while fewer of its own wait than there is room left:
   * a payer with many is refused first, and leaves room to the others.
   */
  readonly waiting: number;
  /** Verifies instead of an engine that stopped. */
  readonly instead?: CheckQueue;
}

/** Hands verifications to an engine, a limited number at once, in rotation of those who pay. */
export class CheckQueue {
  readonly #engine: SignatureEngine;
  readonly #waiting: number;
  readonly #instead: CheckQueue | undefined;
  readonly #slots: FairSlots;
  #pending = 0;
  /** Resolved when none is pending. */
  #settled: PromiseWithResolvers<void> | undefined;

  constructor(engine: SignatureEngine, { parallel, waiting, instead }: CheckQueueParts) {
    this.#engine = engine;
    this.#waiting = waiting;
    this.#instead = instead;
    this.#slots = new FairSlots(parallel);
  }

  /** Resolves when no verification waits or is under way; `undefined` if none is. */
  get settled(): Promise<void> | undefined {
    if (this.#pending === 0) return undefined;
    this.#settled ??= Promise.withResolvers();
    return this.#settled.promise;
  }

  /**
   * Verifies when it is the payer's turn; what {@link SignatureEngine.verify} returns.
   *
   * @throws ProtocolError `temporarily_unavailable` if too many of the payer's wait
   */
  async verify(check: SignatureCheck, payer: string): Promise<boolean | undefined> {
    this.#requireRoom(payer);
    this.#pending += 1;
    const turn = this.#slots.take(payer);
    if (turn !== undefined) await turn;
    let isValid: boolean | undefined;
    try {
      isValid = await this.#engine.verify(check);
    } finally {
      this.#slots.give();
      this.#ended();
    }
    return isValid ?? (await this.#instead?.verify(check, payer));
  }

  #ended(): void {
    this.#pending -= 1;
    if (this.#pending > 0) return;
    this.#settled?.resolve();
    this.#settled = undefined;
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
