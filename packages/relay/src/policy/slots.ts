import { Rotation } from '../rotation.ts';

/** Whose question it is. */
interface Asker {
  /** What has one turn: an account of this relay, another relay, or a network. */
  readonly owner: string;
  readonly account: string;
}

/** Tells a question that waits whether it got a slot. */
type Waiting = (isTaken: boolean) => void;

/**
 * A number of questions that may be under way at once. The others wait, in rotation of their owners,
 * and those of an owner in rotation of its accounts. If too many wait, the owner of the most loses its
 * newest, so that owners with few questions get their turns whatever the others do.
 */
export class QuestionSlots {
  readonly #limit: number;
  readonly #mostWaiting: number;
  /** For each question that waits one item: the name of its owner. */
  readonly #owners = new Rotation<string>();
  /** By owner, if it has any: the questions, in rotation of its accounts. */
  readonly #questions = new Map<string, Rotation<Waiting>>();
  #used = 0;

  constructor(limit: number, mostWaiting: number) {
    this.#limit = limit;
    this.#mostWaiting = mostWaiting;
  }

  /** Returns how many questions of an account wait. */
  waitingOf({ owner, account }: Asker): number {
    return this.#questions.get(owner)?.sizeOf(account) ?? 0;
  }

  /** Takes a slot, when it is the question's turn; returns whether it did. */
  async take(asker: Asker): Promise<boolean> {
    if (this.#used < this.#limit) {
      this.#used += 1;
      return true;
    }
    if (this.#owners.size >= this.#mostWaiting && !this.#makeRoom(asker)) return false;
    const { owner, account } = asker;
    return await new Promise((waiting) => {
      const questions = this.#questions.get(owner) ?? new Rotation();
      this.#questions.set(owner, questions);
      questions.add(account, waiting);
      this.#owners.add(owner, owner);
    });
  }

  /** Gives a slot back: to the next question that waits. */
  give(): void {
    const owner = this.#owners.take();
    if (owner === undefined) {
      this.#used -= 1;
      return;
    }
    const questions = this.#questions.get(owner);
    const next = questions?.take();
    if (questions?.isEmpty) this.#questions.delete(owner);
    next?.(true);
  }

  /**
   * Ends the newest question of the account that has most, of the owner that has most.
   *
   * @returns false if the asker's own question would be the newest of those
   */
  #makeRoom({ owner, account }: Asker): boolean {
    const largest = this.#owners.largest() ?? owner;
    const isOther = this.#owners.sizeOf(largest) > this.#owners.sizeOf(owner) + 1;
    const loser = isOther ? largest : owner;
    const questions = this.#questions.get(loser);
    const most = questions?.largest();
    if (questions === undefined || most === undefined) return false;
    if (!isOther && questions.sizeOf(most) <= questions.sizeOf(account) + 1) return false;
    this.#owners.takeLast(loser);
    questions.takeLast(most)?.(false);
    return true;
  }
}
