/** The load generator, from the side of the bench that starts it. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { LoadOrder, LoadReport } from './load.ts';
import type { MeasuredProcess, MeasuredServer } from './measured-process.ts';
import type { CpuTimes } from './probe.ts';

/** What one run of the load cost the server. */
export interface Measured extends LoadReport {
  /** CPU seconds of the server for 10,000 requests. */
  readonly cpuEach: number;
  /** Microseconds of the server's event loops for one request. */
  readonly loopEach: number;
}

export class LoadGenerator implements Disposable {
  readonly #child: ChildProcess = fork(new URL('load.ts', import.meta.url));

  /** Gives an order and waits until it is done. */
  async order(order: Exclude<LoadOrder, { readonly do: 'run' }>): Promise<void> {
    await this.#send(order);
  }

  /** Sends the prepared frames to a server and measures both. */
  async run(
    { target, processes }: MeasuredServer,
    options: { readonly window: number; readonly rate?: number },
  ): Promise<Measured> {
    const before = await timesOf(processes);
    const report = await this.load(target.name, options);
    const after = await timesOf(processes);
    return {
      ...report,
      cpuEach: (after.process - before.process) / 100 / report.accepted,
      loopEach: (after.loop - before.loop) / report.accepted,
    };
  }

  /** Sends the prepared frames to a server that is not measured. */
  async load(
    name: string,
    options: { readonly window: number; readonly rate?: number },
  ): Promise<LoadReport> {
    const report = await this.#send({ do: 'run', name, ...options });
    if (report === 'done') throw new Error('the load generator reported nothing');
    return report;
  }

  async #send(order: LoadOrder): Promise<LoadReport | 'done'> {
    const over = new AbortController();
    const { signal } = over;
    const ended = once(this.#child, 'exit', { signal }).then(([code]) => {
      throw new Error(`the load generator ended with ${code}`);
    });
    ended.catch(() => {});
    try {
      this.#child.send(order);
      const [answer] = await Promise.race([once(this.#child, 'message', { signal }), ended]);
      if (typeof answer === 'object' && 'error' in answer) throw new Error(answer.error);
      return answer;
    } finally {
      over.abort();
    }
  }

  [Symbol.dispose](): void {
    this.#child.kill('SIGKILL');
  }
}

/** Adds up the CPU time of processes. */
async function timesOf(processes: readonly MeasuredProcess[]): Promise<CpuTimes> {
  const all = await Promise.all(processes.map((process) => process.cpuTimes()));
  const sum = (key: keyof CpuTimes) => all.reduce((total, times) => total + times[key], 0);
  return { process: sum('process'), loop: sum('loop') };
}
