/** One queue of everything that happens in a simulation: time and order are its own. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Chance } from './chance.ts';

/** A simulated process: when it ends, nothing of it runs any more. */
export class SimulatedProcess {
  readonly name: string;
  readonly #endListeners = new Set<() => void>();
  #hasEnded = false;

  constructor(name: string) {
    this.name = name;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Calls `listener` when the process ends, until disposed of. */
  onEnd(listener: () => void): Disposable {
    this.#endListeners.add(listener);
    return { [Symbol.dispose]: () => void this.#endListeners.delete(listener) };
  }

  /** Ends at once: nothing is closed or finished. */
  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    for (const listener of [...this.#endListeners]) listener();
  }
}

interface Task {
  /** Simulated milliseconds at which it may run. */
  readonly at: number;
  readonly work: () => void;
  readonly process: SimulatedProcess;
  isCancelled: boolean;
}

/** How often time passes although work is ready, and by how many milliseconds at most. */
const busyTime = { share: 0.05, milliseconds: 3 } as const;
/** Milliseconds by which a timer may be late. */
const lateness = 1;

/** Lets every microtask run. Taken before the simulation replaces it. */
const nextRealTurn = globalThis.setImmediate;

/**
 * Runs one piece of work after another, in an order that chance decides among all that is ready;
 * after each, every promise that it settled. Time passes when nothing is ready, and a little in
 * between.
 *
 * @example
 * const scheduler = new Scheduler(new Chance(1, 'order'));
 * scheduler.after(500, () => console.log(scheduler.milliseconds)); // about 500
 * await scheduler.run(() => false, 1_000);
 */
export class Scheduler {
  readonly #chance: Chance;
  readonly #current = new AsyncLocalStorage<SimulatedProcess>();
  /** Whatever is started outside of any process. */
  readonly #world = new SimulatedProcess('world');
  readonly #ready: Task[] = [];
  /** By time, the latest first. */
  readonly #timers: Task[] = [];
  #milliseconds = 0;
  #steps = 0;

  constructor(chance: Chance) {
    this.#chance = chance;
  }

  /** Milliseconds since the simulation began. */
  get milliseconds(): number {
    return this.#milliseconds;
  }

  /** Pieces of work that ran. */
  get steps(): number {
    return this.#steps;
  }

  /** The process whose work runs now. */
  get process(): SimulatedProcess {
    return this.#current.getStore() ?? this.#world;
  }

  /** Calls `work` as a part of a process; what it starts is the process's too. */
  within<T>(process: SimulatedProcess, work: () => T): T {
    return this.#current.run(process, work);
  }

  /** Runs `work` of the current process soon. */
  soon(work: () => void): Disposable {
    const { process } = this;
    const task = { at: this.#milliseconds, work, process, isCancelled: false };
    this.#ready.push(task);
    return cancelling(task);
  }

  /** Runs `work` of the current process after so many milliseconds. */
  after(milliseconds: number, work: () => void): Disposable {
    const at = this.#milliseconds + Math.max(0, milliseconds) + this.#chance.number() * lateness;
    const task = { at, work, process: this.process, isCancelled: false };
    let index = this.#timers.length;
    while (index > 0 && (this.#timers[index - 1] as Task).at < at) index -= 1;
    this.#timers.splice(index, 0, task);
    return cancelling(task);
  }

  /** Resolves after so many milliseconds. */
  async pause(milliseconds: number): Promise<void> {
    await new Promise<void>((resolve) => this.after(milliseconds, resolve));
  }

  /**
   * Runs until `isDone`, which is asked after each piece of work.
   *
   * @throws Error if it is not done within this many milliseconds, or nothing is left to run
   */
  async run(isDone: () => boolean, milliseconds: number): Promise<void> {
    const end = this.#milliseconds + milliseconds;
    for (;;) {
      await new Promise((resolve) => nextRealTurn(resolve));
      if (isDone()) return;
      const task = this.#next();
      if (task === undefined || this.#milliseconds > end) {
        throw new Error(`not done after ${Math.round(milliseconds / 1_000)} simulated seconds`);
      }
      this.#steps += 1;
      this.#current.run(task.process, task.work);
    }
  }

  #next(): Task | undefined {
    for (;;) {
      if (this.#ready.length === 0) {
        const first = this.#timers.at(-1);
        if (first === undefined) return undefined;
        this.#milliseconds = Math.max(this.#milliseconds, first.at);
      } else if (this.#chance.is(busyTime.share)) {
        this.#milliseconds += this.#chance.number() * busyTime.milliseconds;
      }
      while ((this.#timers.at(-1)?.at ?? Number.POSITIVE_INFINITY) <= this.#milliseconds) {
        this.#ready.push(this.#timers.pop() as Task);
      }
      const [task] = this.#ready.splice(this.#chance.below(this.#ready.length), 1) as [Task];
      if (!task.isCancelled && !task.process.hasEnded) return task;
    }
  }
}

function cancelling(task: Task): Disposable {
  return {
    [Symbol.dispose]() {
      task.isCancelled = true;
    },
  };
}
