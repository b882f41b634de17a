/** A timeline that many write to: what was acknowledged is in it once, where it was said to be. */
import { ProtocolError } from '@posthouse/protocol';
import { isUncertain } from '../clients/agent.ts';
import type { Journal } from '../journal.ts';

interface Entry {
  readonly id: string;
  /** The highest acknowledged sequence when it was submitted. */
  readonly floor: number;
  outcome: 'pending' | 'accepted' | 'refused' | 'unknown';
  sequence: number | undefined;
}

export class Log {
  readonly name: string;
  readonly #journal: Journal;
  readonly #entries = new Map<string, Entry>();
  #highest = -1;

  constructor(name: string, journal: Journal) {
    this.name = name;
    this.#journal = journal;
  }

  /** Whether an entry may be in the timeline. */
  mayHave(id: string): boolean {
    const entry = this.#entries.get(id);
    return entry !== undefined && entry.outcome !== 'refused';
  }

  /**
   * Submits an entry.
   *
   * @param write returns the sequence that was acknowledged
   * @param expected codes with which it may be refused
   * @returns the sequence; `undefined` if it was refused
   */
  async submit(
    id: string,
    write: () => Promise<number>,
    expected: () => readonly string[],
  ): Promise<number | undefined> {
    const floor = this.#highest;
    const entry: Entry = { id, floor, outcome: 'pending', sequence: undefined };
    this.#entries.set(id, entry);
    try {
      const sequence = await write();
      entry.outcome = 'accepted';
      entry.sequence = sequence;
      this.#highest = Math.max(this.#highest, sequence);
      this.#journal.must(
        sequence > floor,
        () => `${this.name}: ${id} has sequence ${sequence}, and ${floor} was there before`,
      );
      return sequence;
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      entry.outcome = isUncertain(error) ? 'unknown' : 'refused';
      const { code, message } = error;
      this.#journal.must(
        expected().includes(code),
        () => `${this.name}: an entry is refused with ${code}: ${message}`,
      );
      return undefined;
    }
  }

  /** Checks the whole timeline as it is stored: the ID of each entry by its sequence. */
  check(stored: ReadonlyMap<number, string>): void {
    const found = new Map<string, number>();
    for (const [sequence, id] of stored) {
      const isOnce = !found.has(id) && this.mayHave(id);
      this.#journal.must(isOnce, () => `${this.name}: ${id} is there twice, or must not be`);
      found.set(id, sequence);
    }
    for (const { id, outcome, sequence } of this.#entries.values()) {
      if (outcome !== 'accepted') continue;
      this.#journal.must(
        found.get(id) === sequence,
        () => `${this.name}: ${id} was accepted at ${sequence} and is at ${found.get(id)}`,
      );
    }
  }
}
