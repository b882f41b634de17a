import { nextTurn } from '../../event-loop.ts';
import { Queue } from '../../queue.ts';
import type { AggregateKey, AppendKind, BatchWriter } from '../types.ts';
import { ConnectionsBusy, failureKind } from './errors.ts';
import { lockNumber, tryLocksSql } from './sql.ts';

/** Limits of one batch: number of inputs, and bytes of their texts, which one input may exceed. */
const batchSize = 128;
const batchBytes = 262_144;
/** Limit of inputs in a batch that were in one before, and waited for a lock of another write. */
const maxBlocked = 32;
/** Limit of batches that an input is in; then it is declined. */
const maxTries = 32;
/** Number of inputs of a batch after which the next one waits for its turn. */
const busyBatch = 16;
/** Milliseconds before the next batch if every input of the last one waits for a lock. */
const lockPause = 5;

/** One input, of whatever kind. */
interface Waiting {
  readonly kind: AppendKind<unknown, unknown>;
  readonly input: unknown;
  readonly keys: readonly AggregateKey[];
  /** Numbers of the locks of its aggregates. */
  readonly locks: readonly string[];
  readonly bytes: number;
  /** When it is no longer worth running, on the clock of `performance.now`. */
  readonly until: number;
  tries: number;
  readonly resolve: (output: unknown) => void;
  readonly reject: (reason: unknown) => void;
}

/** The work of a batch's transaction. */
export interface BatchWork {
  /** The aggregates of its inputs; they may be chosen when `write` is called. */
  readonly keys: readonly AggregateKey[];
  write(tx: BatchWriter): Promise<void>;
}

/** Runs one transaction; resolves when it is durable. */
type RunBatch = (work: BatchWork) => Promise<void>;

/** The ways to run a batch. */
interface BatchRunners {
  readonly atOnce: RunBatch;
  /**
   * Begins when it is its turn among the batches of all processes, and calls `write` then. Fails with a
   * `busy` error if that takes long. Without other processes there are no turns.
   */
  readonly inTurn: RunBatch | undefined;
}

interface AppendQueueParts extends BatchRunners {
  /** Called for each aggregate that another process has changed, as a batch has found. */
  readonly changed: (aggregate: AggregateKey) => void;
}

/**
 * Groups the appends of a process: all that wait are one transaction with few statements and one
 * flush to disk. The next batch begins when the one before is durable, so that load makes batches
 * larger, and an append that comes alone waits for no other.
 *
 * What a batch costs the server is for the most part independent of its size, up to about thirty
 * inputs. So under load the batches of several processes take turns, and are as large as those of one:
 * what arrives while a process waits for its turn joins its batch.
 *
 * Appends share the locks of their aggregates: two processes append to the same account without
 * waiting for each other's locks, and any other write of the account excludes both. A batch waits for
 * no lock: an input whose lock is not free is in the next batches again, and at last declined. So an
 * account with slow writes delays the appends to no other.
 */
export class AppendQueue {
  readonly #parts: AppendQueueParts;
  readonly #fresh = new Queue<Waiting>();
  /** Inputs that were in a batch while a write of their aggregates ran. */
  readonly #blocked = new Queue<Waiting>();
  #arrived = Promise.withResolvers<void>();
  #isRunning = false;
  /** Whether the next batch waits for its turn. */
  #isBusy = false;

  constructor(parts: AppendQueueParts) {
    this.#parts = parts;
  }

  /**
   * Runs an append in one of the next batches.
   *
   * @param until on the clock of `performance.now`
   * @returns the output, or `undefined` if it was declined
   */
  add<Input, Output>(
    kind: AppendKind<Input, Output>,
    input: Input,
    until: number,
  ): Promise<Output | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const keys = kind.aggregates(input);
    this.#fresh.push({
      kind: kind as AppendKind<unknown, unknown>,
      ...{ input, keys, until, resolve, reject, tries: 0 },
      locks: keys.map((key) => String(lockNumber(key))),
      bytes: kind.batch?.bytes(input) ?? 0,
    });
    this.#arrived.resolve();
    if (!this.#isRunning) void this.#drain();
    return promise as Promise<Output | undefined>;
  }

  async #drain(): Promise<void> {
    this.#isRunning = true;
    while (this.#fresh.size + this.#blocked.size > 0) {
      // Every append of this turn of the event loop joins the batch.
      await nextTurn();
      if ((await this.#runNext()) === 'stuck' && this.#fresh.size === 0) await this.#pause();
    }
    this.#isRunning = false;
  }

  /** Runs the next batch; it is stuck if every input waits for a lock. */
  async #runNext(): Promise<'done' | 'stuck'> {
    const run = this.#newRun(() => this.#take());
    const inTurn = this.#isBusy ? this.#parts.inTurn : undefined;
    await this.#settle(run, inTurn);
    const size = run.isChosen ? run.batch.length : 0;
    this.#isBusy = size >= busyBatch;
    return size > 0 && run.blocked.size === size ? 'stuck' : 'done';
  }

  #newRun(choose: () => readonly Waiting[]): BatchRun {
    return new BatchRun(choose, this.#parts.changed);
  }

  /** Waits a moment for the locks of other writes, or until an append arrives. */
  async #pause(): Promise<void> {
    this.#arrived = Promise.withResolvers<void>();
    const timer = setTimeout(this.#arrived.resolve, lockPause);
    await this.#arrived.promise;
    clearTimeout(timer);
  }

  /** Takes the inputs of the next batch. */
  #take(): Waiting[] {
    const batch: Waiting[] = [];
    let bytes = 0;
    const takeFrom = (queue: Queue<Waiting>, limit: number) => {
      while (batch.length < limit) {
        const next = queue.first;
        if (next === undefined || (batch.length > 0 && bytes + next.bytes > batchBytes)) return;
        queue.shift();
        // Earlier batches may have waited up to their own timeouts.
        if (performance.now() >= next.until) next.reject(new ConnectionsBusy('too many appends'));
        else {
          batch.push(next);
          bytes += next.bytes;
        }
      }
    };
    takeFrom(this.#blocked, maxBlocked);
    takeFrom(this.#fresh, batchSize);
    return batch;
  }

  /**
   * Runs a batch and answers its inputs. If one of them makes the statements fail, or declines all of
   * them, the others must not suffer: each half runs for itself.
   */
  async #settle(run: BatchRun, inTurn?: RunBatch): Promise<void> {
    try {
      await (inTurn ?? this.#parts.atOnce)(run);
    } catch (error) {
      // Another process may have stopped in its turn. Nothing was chosen: the next batch begins at once.
      if (inTurn !== undefined && !run.isChosen && failureKind(error) === 'busy') return;
      const { batch } = run;
      if (!run.isRefused(error)) for (const { reject } of batch) reject(error);
      else if (batch.length > 1) {
        const half = Math.ceil(batch.length / 2);
        await this.#settle(this.#newRun(() => batch.slice(0, half)));
        await this.#settle(this.#newRun(() => batch.slice(half)));
      } else if (error instanceof BatchDeclined) batch[0]?.resolve(undefined);
      else batch[0]?.reject(error);
      return;
    }
    for (const waiting of run.batch) {
      const isBlocked = run.blocked.has(waiting);
      if (isBlocked && waiting.tries < maxTries) this.#blocked.push(waiting);
      else waiting.resolve(run.outputs.get(waiting));
    }
  }
}

/** The inputs of a batch that were written together are declined; what was written is undone. */
class BatchDeclined extends Error {
  override readonly name = 'BatchDeclined';
}

/** The work of one batch's transaction, whose inputs are chosen as late as possible. */
class BatchRun implements BatchWork {
  readonly outputs = new Map<Waiting, unknown>();
  /** Inputs whose locks were not free. */
  readonly blocked = new Set<Waiting>();
  readonly #choose: () => readonly Waiting[];
  readonly #changed: AppendQueueParts['changed'];
  #batch: readonly Waiting[] | undefined;
  #failure: unknown;

  constructor(choose: () => readonly Waiting[], changed: AppendQueueParts['changed']) {
    this.#choose = choose;
    this.#changed = changed;
  }

  get isChosen(): boolean {
    return this.#batch !== undefined;
  }

  /** The inputs, chosen when they are first asked for. */
  get batch(): readonly Waiting[] {
    this.#batch ??= this.#choose();
    return this.#batch;
  }

  get keys(): AggregateKey[] {
    return [...new Set(this.batch.flatMap(({ keys }) => keys))];
  }

  async write(tx: BatchWriter): Promise<void> {
    if (this.batch.length === 0) return;
    const free = await this.#lock(tx);
    // Always in the same order: so the batches of two processes do not deadlock, since kinds that write
    // the same rows are one part.
    const parts = [...Map.groupBy(free, ({ kind }) => kind.batch).values()].sort(([a], [b]) =>
      (a as Waiting).kind.name < (b as Waiting).kind.name ? -1 : 1,
    );
    try {
      for (const part of parts) await this.#writePart(tx, part);
    } catch (error) {
      this.#failure = error;
      throw error;
    }
  }

  /** Whether the statements of a kind failed with this error, and would fail again. */
  isRefused(error: unknown): boolean {
    return error === this.#failure && failureKind(error) === 'refused';
  }

  /**
   * Locks the aggregates as far as they are free: statements that begin after this one see all that
   * other writes of them committed.
   *
   * @returns the inputs whose locks were free
   */
  async #lock(tx: BatchWriter): Promise<Waiting[]> {
    const locks = [...new Set(this.batch.flatMap((waiting) => waiting.locks))];
    const rows = await tx.all<{ taken: number }>(tryLocksSql, locks);
    const taken = new Set(locks.filter((_, index) => rows[index]?.taken === 1));
    return this.batch.filter((waiting) => {
      waiting.tries += 1;
      const isFree = waiting.locks.every((lock) => taken.has(lock));
      if (!isFree) this.blocked.add(waiting);
      return isFree;
    });
  }

  /** Writes the inputs of the kinds that share a batch. */
  async #writePart(tx: BatchWriter, part: readonly Waiting[]): Promise<void> {
    const { batch, name } = (part[0] as Waiting).kind;
    const inputs = part.map(({ input }) => input);
    const outputs = await batch?.write(tx, inputs, this.#changed);
    if (outputs === undefined) throw new BatchDeclined(name);
    for (const [index, waiting] of part.entries()) this.outputs.set(waiting, outputs[index]);
  }
}
