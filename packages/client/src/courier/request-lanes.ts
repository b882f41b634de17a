/** Runs requests: those of one lane in order, some alone, a bounded number at once. */

/** Requests that run at once. */
const most = 8;

/** Requests that run or wait; further ones are not read. */
const mostAccepted = 64;

export class RequestLanes {
  readonly #tails = new Map<string, Promise<void>>();
  /** The last work that runs alone. */
  #alone: Promise<unknown> = Promise.resolve();
  readonly #accepted = new Set<Promise<void>>();
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  /** Adds work to the end of a lane; resolves when more can be added. `work` must not throw. */
  async add(lane: string, work: () => Promise<void>): Promise<void> {
    const done = this.#after(this.#tails.get(lane) ?? this.#alone, work);
    this.#tails.set(lane, done);
    void done.then(() => {
      if (this.#tails.get(lane) === done) this.#tails.delete(lane);
    });
    await this.#room();
  }

  /** Adds work that runs after all that was added, and before all that is added later. */
  async addAlone(work: () => Promise<void>): Promise<void> {
    this.#alone = this.#after(Promise.all(this.#accepted), work);
    this.#tails.clear();
    await this.#room();
  }

  /** Resolves when no work that runs alone waits or runs. */
  async untilShared(): Promise<void> {
    await this.#alone;
  }

  #after(before: Promise<unknown>, work: () => Promise<void>): Promise<void> {
    const done = before.then(() => this.#run(work));
    this.#accepted.add(done);
    void done.then(() => this.#accepted.delete(done));
    return done;
  }

  async #room(): Promise<void> {
    while (this.#accepted.size >= mostAccepted) await Promise.race(this.#accepted);
  }

  /** Waits until everything that was added has run. */
  async finish(): Promise<void> {
    await Promise.all(this.#accepted);
  }

  async #run(work: () => Promise<void>): Promise<void> {
    if (this.#running >= most) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running += 1;
    await work();
    const next = this.#waiting.shift();
    if (next === undefined) this.#running -= 1;
    else next();
  }
}
