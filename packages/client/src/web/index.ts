/** What only pages and workers have: a store in IndexedDB, Web Crypto, and when to wake a client. */
import '../dispose-symbols.ts';

export { webPrimitives } from '@posthouse/protocol/web';
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
