import { Slots } from '@posthouse/peer';

/** Requests under way of each relay: a number of them at once, while others wait in their order. */
export class RequestSlots {
  readonly #limit: number;
  readonly #relays = new Map<string, Slots>();

  /** @param limit of each relay */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /**
   * Waits for a slot and takes it; disposing of the result gives it back.
   *
   * @throws the signal's reason if it aborts first
   */
  async take(relayId: string, signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    const slots = this.#relays.get(relayId) ?? new Slots(this.#limit);
    this.#relays.set(relayId, slots);
    if (!slots.tryTake()) await slots.take(signal);
    return { [Symbol.dispose]: () => this.#give(relayId, slots) };
  }

  #give(relayId: string, slots: Slots): void {
    slots.give();
    if (slots.used === 0) this.#relays.delete(relayId);
  }
}
