/**
 * What only pages and workers have: a store in IndexedDB, Web Crypto, and when to wake a client. What
 * recognizes errors is here too: a page whose client is in a worker needs no other entry at its start.
 */
import '../dispose-symbols.ts';

export { webPrimitives } from '@posthouse/protocol/web';
export { isClientError, isRefusal } from '../errors.ts';
export { browserWake, type WakeEvents } from '../follow/browser-wake.ts';
export { IndexedDbStore } from './indexed-db-store.ts';
export { type StorageStatus, storageStatus } from './storage-status.ts';
export {
  clientInWorker,
  type InWorker,
  type WorkerAccount,
  type WorkerClient,
} from './worker/client-in-worker.ts';
export type { WorkerClientOptions, WorkerPort } from './worker/messages.ts';
