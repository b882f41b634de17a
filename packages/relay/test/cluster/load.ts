/** Steady load, and what is still owed to the clients under it. */
import { setTimeout } from 'node:timers/promises';
import type { Log } from './log.ts';
import type { Member } from './member.ts';
import { type Person, writeLetter } from './people.ts';

/** Milliseconds between an answer and the sender's next message, at the most. */
const longestPause = 50;
/** One message in so many must be refused, for each of two reasons. */
const refusedOneIn = 25;

/**
 * Everybody writes to everybody, one message after another: the next one of a sender begins when
 * the one before is confirmed.
 */
export class Load implements AsyncDisposable {
  readonly #people: readonly Person[];
  readonly #chance: () => number;
  readonly #refused: boolean;
  readonly #senders: Promise<void>[];
  readonly #ending = new AbortController();
  #gate = Promise.withResolvers<void>();
  #isPaused = false;
  #underWay = 0;
  #idle = Promise.withResolvers<void>();

  /**
   * @param options.refused whether some messages lack permission, which the sender is told at once if
   *   both are at home at one relay
   */
  constructor(
    members: readonly Member[],
    people: readonly Person[],
    { chance, refused = true }: { readonly chance: () => number; readonly refused?: boolean },
  ) {
    this.#people = people;
    this.#chance = chance;
    this.#refused = refused;
    this.#gate.resolve();
    this.#senders = members.map((member) => this.#send(member));
  }

  /** Sends nothing new; resolves when every message under way has its outcome. */
  async pause(): Promise<void> {
    if (!this.#isPaused) {
      this.#isPaused = true;
      this.#gate = Promise.withResolvers();
    }
    this.#idle = Promise.withResolvers();
    if (this.#underWay > 0) await this.#idle.promise;
  }

  resume(): void {
    this.#isPaused = false;
    this.#gate.resolve();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    this.resume();
    await Promise.all(this.#senders);
  }

  async #send(member: Member): Promise<void> {
    const { signal } = this.#ending;
    const others = this.#people.filter((person) => person !== member.phone.owner);
    let last: string | undefined;
    while (!signal.aborted) {
      await this.#gate.promise;
      if (signal.aborted) return;
      this.#underWay += 1;
      last = (await this.#sendOne(member, { others, last })) ?? last;
      this.#underWay -= 1;
      if (this.#underWay === 0) this.#idle.resolve();
      const pause = this.#chance() * longestPause;
      await setTimeout(pause, undefined, { signal }).catch(() => {});
    }
  }

  /** @returns the ID of a message that was accepted */
  async #sendOne(
    member: Member,
    { others, last }: { readonly others: readonly Person[]; readonly last: string | undefined },
  ): Promise<string | undefined> {
    const to = others[Math.floor(this.#chance() * others.length)] as Person;
    const lot = Math.floor(this.#chance() * refusedOneIn);
    const letter = writeLetter(member.phone, to, {
      ungranted: lot === 0 && this.#refused,
      ...(lot === 1 && last !== undefined && { messageId: last }),
    });
    const outcome = await member.send(letter);
    return outcome === 'ok' ? letter.sending.id.split('/')[1] : undefined;
  }
}

/** Who has not yet been shown what was confirmed, from the log as it grows. */
export class Debts {
  readonly #log: Log;
  readonly #letters = new Map<string, readonly string[]>();
  readonly #calls = new Map<number, string>();
  readonly #shown = new Set<string>();
  readonly #removed = new Set<string>();
  #owed = new Set<string>();
  #read = 0;
  #accepted = 0;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Answers to sends that were a success, so far. */
  get accepted(): number {
    this.#catchUp();
    return this.#accepted;
  }

  get none(): boolean {
    this.#catchUp();
    for (const debt of this.#owed) if (this.#isPaid(debt)) this.#owed.delete(debt);
    return this.#owed.size === 0;
  }

  /** Resolves when so many more messages were confirmed. */
  async progress(count: number): Promise<void> {
    const goal = this.accepted + count;
    await this.#log.until(
      () => `${goal - this.accepted} more messages to be accepted`,
      () => this.accepted >= goal,
    );
  }

  /** Pauses the load, and resolves when all that was confirmed was shown. */
  async settled(load: Load): Promise<void> {
    await load.pause();
    await this.#log.until(
      () => this.#describe(),
      () => this.none,
    );
  }

  #describe(): string {
    return `${this.#owed.size} deliveries, such as ${[...this.#owed].slice(0, 3).join(', ')}`;
  }

  #isPaid(debt: string): boolean {
    return this.#shown.has(debt) || this.#removed.has(debt.split(' ', 1)[0] as string);
  }

  #catchUp(): void {
    for (; this.#read < this.#log.entries.length; this.#read += 1) {
      const seen = this.#log.entries[this.#read];
      if (seen?.kind === 'sending') this.#letters.set(seen.content, seen.readers);
      if (seen?.kind === 'removed') this.#removed.add(seen.device);
      if (seen?.kind === 'call' && seen.content !== undefined) {
        this.#calls.set(seen.call, seen.content);
      }
      if (seen?.kind === 'page') {
        for (const { content } of seen.entries) this.#shown.add(`${seen.device} ${content}`);
      }
      const content = seen?.kind === 'answer' ? this.#calls.get(seen.call) : undefined;
      if (seen?.kind !== 'answer' || seen.outcome !== 'ok' || content === undefined) continue;
      this.#accepted += 1;
      for (const reader of this.#letters.get(content) ?? []) this.#owed.add(`${reader} ${content}`);
    }
  }
}
