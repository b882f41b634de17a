/**
 * The entry for a worker's own module: imported, it serves the page that started the worker. See
 * `clientInWorker`.
 */
import '../../dispose-symbols.ts';
import type { WorkerPort } from './messages.ts';
import { serveClient } from './serve-client.ts';

const worker = globalThis as unknown as Partial<WorkerPort>;

// Programs that load every module of a package have no page to serve.
if (worker.addEventListener !== undefined) serveClient(worker as WorkerPort);
