/**
 * The load generator process of `cluster.ts`: seals its messages, reports `prepared`, sends when it
 * gets `go`, and reports the result with the CPU time of sending.
 */
import { loadTarget } from '@posthouse/conformance';
import { Load, type LoadOptions, type LoadResult } from './support.ts';

export interface LoadOrder {
  readonly target: Parameters<typeof loadTarget>[0];
  readonly sockets: readonly string[];
  readonly options: LoadOptions;
}

export interface LoadReport extends LoadResult {
  /** Seconds of this process while it sent. */
  readonly cpu: number;
}

/** Waits for the next message of the parent process. */
function nextMessage<T>(): Promise<T> {
  const { promise, resolve } = Promise.withResolvers<T>();
  process.once('message', (message) => resolve(message as T));
  return promise;
}

const order = await nextMessage<LoadOrder>();
const target = await loadTarget(order.target);
const load = await Load.prepare(target, order.sockets, order.options);
const start = nextMessage<'go'>();
process.send?.('prepared');
await start;
const before = process.cpuUsage();
const result = await load.run();
const { user, system } = process.cpuUsage(before);
const report: LoadReport = { ...result, cpu: (user + system) / 1_000_000 };
await load[Symbol.asyncDispose]();
process.send?.(report, undefined, undefined, () => process.disconnect?.());
