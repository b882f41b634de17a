/**
 * The load generator of `cluster.ts`, a process of its own: it prepares what it is told, says so,
 * waits for the word, and tells what came of it with the CPU time that sending took.
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

/** The next message of the process that started this one. */
function hear<T>(): Promise<T> {
  const { promise, resolve } = Promise.withResolvers<T>();
  process.once('message', (message) => resolve(message as T));
  return promise;
}

const order = await hear<LoadOrder>();
const target = await loadTarget(order.target);
const load = await Load.prepare(target, order.sockets, order.options);
const word = hear<'go'>();
process.send?.('prepared');
await word;
const before = process.cpuUsage();
const result = await load.run();
const { user, system } = process.cpuUsage(before);
const report: LoadReport = { ...result, cpu: (user + system) / 1_000_000 };
await load[Symbol.asyncDispose]();
process.send?.(report, undefined, undefined, () => process.disconnect?.());
