import { Worker } from 'node:worker_threads';
import type { SqliteConnection } from './connection.ts';

/** Frames of a page each, in the log of a database, and how many of them are copied. */
export interface LogFrames {
  readonly log: number;
  readonly checkpointed: number;
}

/** Frames of 4 KiB after which the log is copied: 16 MiB. */
const copiedAt = 4_096;
/** Frames above which the writer waits for a copy that is under way: 32 MiB. */
const heldAt = 8_192;
/** Frames that are copied when the relay has nothing else to do, and after how many milliseconds. */
const copiedIdle = 1_000;
const idleMilliseconds = 500;
/** The thread holds one connection; MiB. */
const resourceLimits = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 };

/** Does `work` while no read of this process is under way, unless one lasts long. */
type HoldReads = <T>(work: () => Promise<T>) => Promise<T>;

/** Counts the frames of the log, and copies none. */
const countSql = 'PRAGMA wal_checkpoint(NOOP)';

/**
 * Copies the log into the database in a thread of its own, with the flushes that this takes. The log
 * starts anew with a commit before which all of it was copied; under load there is always a rest. So
 * after a long copy the writer waits before its next batch until the thread has copied that rest.
 * A read under way keeps it from that, too: above the limit the next reads also wait.
 * A reader that stays, such as a backup, keeps the log from starting anew: it grows until it ends.
 *
 * If the thread dies, or cannot be started, SQLite copies the log in some of its commits.
 */
export class Checkpoints implements AsyncDisposable {
  readonly #connection: SqliteConnection;
  readonly #path: string;
  readonly #died: (error: unknown) => void;
  readonly #holdReads: HoldReads;
  #thread: Worker | undefined;
  /** Resolves when the thread, if there was one, has ended and has no connection any more. */
  #exited: Promise<void> | undefined;
  /** Whether it copies nothing any more: it was closed, or its thread died. */
  #hasEnded = false;
  /** The copy that is under way. */
  #copying: Promise<LogFrames | undefined> | undefined;
  #copied: ((frames: LogFrames | undefined) => void) | undefined;
  /** As of the last commit. */
  #latest: LogFrames = { log: 0, checkpointed: 0 };
  /** Whether the writer waits for the rest before its next batch. */
  #hasRest = false;
  /** Frames of the log at which the next copy begins. */
  #nextAt = copiedAt;
  #idle: NodeJS.Timeout | undefined;

  /** @param parts.died is told why the thread has ended by itself */
  constructor(
    connection: SqliteConnection,
    parts: {
      readonly path: string;
      readonly died: (error: unknown) => void;
      readonly holdReads: HoldReads;
    },
  ) {
    this.#connection = connection;
    this.#path = parts.path;
    this.#died = parts.died;
    this.#holdReads = parts.holdReads;
    connection.execute('PRAGMA wal_autocheckpoint=0');
  }

  /** Resolves when a batch may begin. */
  async beforeBatch(): Promise<void> {
    if (this.#copying !== undefined && this.#latest.log >= heldAt) await this.#copying;
    if (!this.#hasRest || this.#copying !== undefined) return;
    this.#hasRest = false;
    const copy = () => this.#copy();
    await (this.#latest.log < heldAt ? copy() : this.#holdReads(copy));
    // If a reader keeps the log from starting anew, there is no use in another copy soon.
    this.#nextAt = nextAfter(this.#latest.log);
  }

  /** Call it after each commit, while no transaction is open. */
  committed(): void {
    if (this.#hasEnded) return;
    this.#latest = this.#connection.get(countSql, []) as unknown as LogFrames;
    const { log, checkpointed } = this.#latest;
    if (log < copiedAt) this.#nextAt = copiedAt;
    if (this.#copying !== undefined || this.#hasRest || checkpointed >= log) return;
    if (log >= this.#nextAt) void this.#copyMost();
    else this.#copyWhenIdle();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#idle);
    this.#hasEnded = true;
    await this.#copying;
    this.#thread?.postMessage('close');
    // Also if it ends with an error now, or ended before.
    await this.#exited;
  }

  /** Copies what is in the log now, while the writer goes on. */
  async #copyMost(): Promise<void> {
    const copied = await this.#copy();
    const { log } = this.#latest;
    // Less, if a reader uses the frames that follow, or the disk is full.
    const isComplete = copied !== undefined && copied.checkpointed >= copied.log;
    if (!isComplete) this.#nextAt = nextAfter(log);
    const hasRest = log > (copied?.checkpointed ?? 0);
    this.#hasRest = hasRest && (isComplete ? log >= copiedAt : log >= heldAt);
    // If the writer does not come.
    if (hasRest && !this.#hasEnded) this.#copyWhenIdle();
  }

  #copyWhenIdle(): void {
    this.#idle ??= setTimeout(() => {
      this.#idle = undefined;
      if (this.#hasEnded || this.#copying !== undefined) return;
      // A relay that writes little has no thread.
      if (this.#thread !== undefined || this.#latest.log >= copiedIdle) void this.#copyMost();
    }, idleMilliseconds).unref();
  }

  /** Has the thread copy what no reader needs; `undefined` if it could not. */
  #copy(): Promise<LogFrames | undefined> {
    if (this.#hasEnded) return Promise.resolve(undefined);
    this.#thread ??= this.#start();
    if (this.#thread === undefined) return Promise.resolve(undefined);
    this.#copying = new Promise((resolve) => {
      this.#copied = (frames) => {
        this.#copying = undefined;
        resolve(frames);
      };
    });
    this.#thread.postMessage('copy');
    return this.#copying;
  }

  /** Returns `undefined` if the system permits no other thread. */
  #start(): Worker | undefined {
    try {
      // The file has the extension of this one: in the sources, in the package, and in a bundle.
      const [extension] = /\.\w+$/.exec(import.meta.url) ?? [];
      const thread = new Worker(new URL(`./checkpoint-thread${extension}`, import.meta.url), {
        workerData: { path: this.#path },
        resourceLimits,
      });
      thread.on('message', (frames: LogFrames | undefined) => this.#copied?.(frames));
      thread.once('error', (error) => this.#stopped(error));
      this.#exited = new Promise((resolve) => {
        thread.once('exit', (code) => {
          this.#stopped(new Error(`the thread ended with ${code}`));
          resolve();
        });
      });
      return thread;
    } catch (error) {
      this.#stopped(error);
      return undefined;
    }
  }

  #stopped(error: unknown): void {
    this.#thread = undefined;
    this.#copied?.(undefined);
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#connection.execute('PRAGMA wal_autocheckpoint=1000');
    this.#died(error);
  }
}

/** Returns at how many frames the next copy begins, after one that did not let the log start anew. */
function nextAfter(log: number): number {
  return log < heldAt ? Math.min(log + copiedAt, heldAt) : log + copiedAt;
}
