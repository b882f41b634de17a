/** Runs requests: those of one lane in order, a bounded number at once. */

/** Requests that run at once. */
const most = 8;

/** Requests that run or wait; further ones are not read. */
const mostAccepted = 64;

export class RequestLanes {
  readonly #tails = new Map<string, Promise<void>>();
  readonly #accepted = new Set<Promise<void>>();
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  /** Adds work to the end of a lane; resolves when more can be added. `work` must not throw. */
  async add(lane: string, work: () => Promise<void>): Promise<void> {
    const before = this.#tails.get(lane) ?? Promise.resolve();
    const done = before.then(() => this.#run(work));
    this.#tails.set(lane, done);
    this.#accepted.add(done);
    void done.then(() => {
      this.#accepted.delete(done);
      if (this.#tails.get(lane) === done) this.#tails.delete(lane);
    });
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
