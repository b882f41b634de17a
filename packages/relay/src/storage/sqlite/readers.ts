import { SqliteConnection } from './connection.ts';

/** Limit of snapshots open at once. */
const connections = 4;
/** Milliseconds for which {@link Readers.hold} waits for reads that are under way. */
const holdMilliseconds = 50;

/** The connections that read, each used by one snapshot at a time. */
export class Readers {
  readonly #all: readonly SqliteConnection[];
  readonly #idle: SqliteConnection[];
  readonly #waiting: ((connection: SqliteConnection) => void)[] = [];
  #isHeld = false;
  /** Called when all connections are idle, if something waits for that. */
  #onQuiet: (() => void) | undefined;

  constructor(path: string) {
    this.#all = Array.from({ length: connections }, () => {
      return new SqliteConnection(path, { readOnly: true });
    });
    this.#idle = [...this.#all];
  }

  /** Waits for an idle connection. */
  async take(): Promise<SqliteConnection> {
    const idle = this.#isHeld ? undefined : this.#idle.pop();
    return idle ?? (await new Promise((resolve) => this.#waiting.push(resolve)));
  }

  /** Takes an idle connection at once if another one stays idle. */
  takeSpare(): SqliteConnection | undefined {
    return this.#isHeld || this.#idle.length < 2 ? undefined : this.#idle.pop();
  }

  release(connection: SqliteConnection): void {
    this.#idle.push(connection);
    if (this.#idle.length === this.#all.length) this.#onQuiet?.();
    this.#serve();
  }

  /**
   * Does `work` while no connection is in use: the next reads begin after it. If those under way last
   * long, it does not wait for them.
   */
  async hold<T>(work: () => Promise<T>): Promise<T> {
    this.#isHeld = true;
    try {
      if (this.#idle.length < this.#all.length) await this.#quiet();
      return await work();
    } finally {
      this.#isHeld = false;
      this.#serve();
    }
  }

  /** Closes each connection when it is idle; no read may begin any more. */
  async close(): Promise<void> {
    for (let count = 0; count < this.#all.length; count += 1) (await this.take()).close();
  }

  async #quiet(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onQuiet = resolve;
    const timer = setTimeout(resolve, holdMilliseconds);
    await promise;
    clearTimeout(timer);
    this.#onQuiet = undefined;
  }

  #serve(): void {
    while (!this.#isHeld && this.#idle.length > 0 && this.#waiting.length > 0) {
      this.#waiting.shift()?.(this.#idle.pop() as SqliteConnection);
    }
  }
}
