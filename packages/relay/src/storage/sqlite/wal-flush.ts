import { closeSync, fdatasync, openSync } from 'node:fs';
import { promisify } from 'node:util';
import { Queue } from '../../queue.ts';
import type { StorageFaults } from '../types.ts';

const dataSync = promisify(fdatasync);

interface WaitingForFlush {
  readonly commit: number;
  readonly resolve: () => void;
}

/**
 * Flushes the log of a database to disk, on the thread pool. A commit is durable when a flush that
 * began after it has ended: until then nothing that depends on it may leave the process.
 *
 * After a flush that failed, no later one proves anything: the system may have dropped what it could
 * not write. The promises of those commits then never resolve, and `failed` ends the process.
 */
export class WalFlush implements Disposable {
  readonly #faults: Pick<StorageFaults, 'flush'>;
  readonly #failed: (error: unknown) => void;
  readonly #ended: () => void;
  readonly #waiting = new Queue<WaitingForFlush>();
  readonly #log: number;
  #commits = 0;
  #flushed = 0;
  #flushing = 0;
  #running: Promise<void> | undefined;
  #hasFailed = false;

  /**
   * Opens the log, which exists while a connection is open: later there might be no file descriptor
   * left. SQLite's locks are on other files: those on the database would be lost if it were opened and
   * closed here.
   *
   * @param path of the database
   * @param parts.failed ends the process
   * @param parts.ended is called after each flush, before anybody else hears of it
   */
  constructor(
    path: string,
    parts: {
      readonly faults: Pick<StorageFaults, 'flush'>;
      readonly failed: (error: unknown) => void;
      readonly ended: () => void;
    },
  ) {
    this.#log = openSync(`${path}-wal`, 'r+');
    this.#faults = parts.faults;
    this.#failed = parts.failed;
    this.#ended = parts.ended;
  }

  /** Resolves when the flush that is under way has ended; `undefined` if there is none. */
  get underWay(): Promise<void> | undefined {
    return this.#running;
  }

  /** Whether a flush has failed; then none follows. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /** Number of commits so far. */
  get commits(): number {
    return this.#commits;
  }

  /** Number of the last commit that is durable. */
  get flushed(): number {
    return this.#flushed;
  }

  /** Number of the last commit that the flush under way, or else the last flush, makes durable. */
  get flushing(): number {
    return this.#flushing;
  }

  /** Number of commits that are not durable yet. */
  get unflushed(): number {
    return this.#commits - this.#flushed;
  }

  /** Call it after each commit that wrote something; the flush begins at once or after the present one. */
  committed(): void {
    this.#commits += 1;
    this.#run();
  }

  /** Resolves when all commits until now are durable; `undefined` if they are. */
  reached(): Promise<void> | undefined {
    const commit = this.#commits;
    if (commit === this.#flushed) return undefined;
    return new Promise((resolve) => this.#waiting.push({ commit, resolve }));
  }

  /** Resolves when no flush is under way or needed. */
  async idle(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  /** Closes the log. Call it when it is idle. */
  [Symbol.dispose](): void {
    closeSync(this.#log);
  }

  #run(): void {
    if (this.#running !== undefined || this.#hasFailed) return;
    this.#running = this.#flushOnce();
  }

  async #flushOnce(): Promise<void> {
    const commits = this.#commits;
    this.#flushing = commits;
    try {
      await (this.#faults.flush?.(() => this.#flush()) ?? this.#flush());
    } catch (error) {
      this.#hasFailed = true;
      this.#running = undefined;
      this.#failed(error);
      return;
    }
    this.#flushed = commits;
    this.#ended();
    this.#running = undefined;
    if (this.#commits > commits) this.#run();
    while ((this.#waiting.first?.commit ?? Infinity) <= commits) this.#waiting.shift()?.resolve();
  }

  async #flush(): Promise<void> {
    await dataSync(this.#log);
  }
}
