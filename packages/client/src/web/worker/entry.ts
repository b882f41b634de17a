/**
 * The entry for a worker's own module: imported, it serves the page that started the worker. See
 * `clientInWorker`.
 */
import '../../dispose-symbols.ts';
import type { WorkerPort } from './messages.ts';
import { serveClient } from './serve-client.ts';

serveClient(globalThis as unknown as WorkerPort);
