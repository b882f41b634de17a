/**
 * The entry for a worker's own module: imported in a dedicated worker, it serves the page that
 * started the worker. Anywhere else it does nothing: what a window or a shared worker hears may come
 * from anybody. See `clientInWorker`.
 */
import '../../dispose-symbols.ts';
import type { WorkerPort } from './messages.ts';
import { serveClient } from './serve-client.ts';

const { DedicatedWorkerGlobalScope: Scope } = globalThis as {
  DedicatedWorkerGlobalScope?: new () => object;
};

if (Scope !== undefined && globalThis instanceof Scope) {
  serveClient(globalThis as unknown as WorkerPort);
}
