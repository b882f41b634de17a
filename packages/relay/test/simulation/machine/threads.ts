/** Threads that a process of a simulation starts: their work is work of that process. */
import { EventEmitter } from 'node:events';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import { basename } from 'node:path';
import { simulation } from './builtins.ts';

/**
 * What a thread does.
 *
 * @param data that it is started with
 * @returns what answers a message
 */
export type ThreadProgram = (data: unknown) => (message: unknown) => unknown;

/** Milliseconds that a message takes at most. */
const longest = 20;

/** Replaces the threads of `node:worker_threads`: each runs a program, by the name of its file. */
export function replaceThreads(programs: Readonly<Record<string, ThreadProgram>>): void {
  class SimulatedWorker extends EventEmitter {
    readonly #answer: ReturnType<ThreadProgram>;

    constructor(url: URL, { workerData }: { readonly workerData: unknown }) {
      super();
      const program = programs[basename(url.pathname)];
      if (program === undefined) throw new Error(`a simulation has no thread ${url}`);
      this.#answer = program(workerData);
    }

    postMessage(message: unknown): void {
      const { scheduler, chance } = simulation();
      scheduler.after(chance.number() * longest, () => {
        const answer = this.#answer(message);
        scheduler.soon(() => this.emit('message', answer));
      });
    }
  }
  const threads = createRequire(import.meta.url)('node:worker_threads');
  threads.Worker = SimulatedWorker;
  syncBuiltinESMExports();
}
