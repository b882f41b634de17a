/** What the process itself uses, read when metrics are asked for. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Metrics } from './metrics.ts';

/** Milliseconds between two samples of the event loop's delay. */
const resolution = 20;
const nanoseconds = 1e9;

/** Measures the event loop from its start on, until it is disposed of. */
export class ProcessFigures implements Disposable {
  readonly #delay = monitorEventLoopDelay({ resolution });

  constructor() {
    this.#delay.enable();
  }

  /** Sets the gauges; the delays are those since the last time. */
  update(metrics: Metrics): void {
    const { rss, heapUsed } = process.memoryUsage();
    const { user, system } = process.cpuUsage();
    metrics.set('process_resident_memory_bytes', rss);
    metrics.set('process_heap_bytes', heapUsed);
    metrics.set('process_cpu_seconds', (user + system) / 1e6);
    metrics.set('process_uptime_seconds', Math.floor(process.uptime()));
    const delayOf = (percentile: number) => this.#delay.percentile(percentile) / nanoseconds;
    metrics.set('event_loop_delay_seconds', delayOf(50), { percentile: '50' });
    metrics.set('event_loop_delay_seconds', delayOf(99), { percentile: '99' });
    metrics.set('event_loop_delay_seconds', this.#delay.max / nanoseconds, { percentile: '100' });
    this.#delay.reset();
  }

  [Symbol.dispose](): void {
    this.#delay.disable();
  }
}
