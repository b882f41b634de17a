/** What only pages and workers have: a store in IndexedDB. */
import '../dispose-symbols.ts';

export { IndexedDbStore } from './indexed-db-store.ts';
export { type StorageStatus, storageStatus } from './storage-status.ts';
