import { ProtocolError } from '@posthouse/protocol';
import type { Journal } from '../journal.ts';

/** Refusals that time explains: a clock was set forward while a call was repeated. */
export const ofTime: readonly string[] = ['clock_skew', 'message_expired', 'not_found'];
/** Refusals of a device that is none any more, or that the host does not know of yet. */
export const ofDevice: readonly string[] = ['device_unknown', 'unauthorized', 'forbidden'];

/** Changes of one group or channel, one after another: each is signed upon the one before. */
export class Changes {
  readonly #name: string;
  readonly #journal: Journal;
  readonly #isUncertain: () => boolean;
  /** False once a change was refused for a reason of time: its people do not know the head then. */
  #isPossible = true;
  #last: Promise<unknown> = Promise.resolve();

  /** @param isUncertain whether the host may not know a device of those who sign */
  constructor(name: string, journal: Journal, isUncertain: () => boolean) {
    this.#name = name;
    this.#journal = journal;
    this.#isUncertain = isUncertain;
  }

  get isPossible(): boolean {
    return this.#isPossible;
  }

  /** Makes a change after those before; returns whether it was accepted. */
  async make(act: () => Promise<void>): Promise<boolean> {
    const done = this.#last.then(async () => {
      if (!this.#isPossible) return false;
      try {
        await act();
        return true;
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        const { code, message } = error;
        const isUnknown = this.#isUncertain() && ofDevice.includes(code);
        this.#journal.must(
          isUnknown || ofTime.includes(code),
          () => `${this.#name}: a change is refused with ${code}: ${message}`,
        );
        this.#isPossible = false;
        return false;
      }
    });
    this.#last = done.catch(() => {});
    return await done;
  }
}
