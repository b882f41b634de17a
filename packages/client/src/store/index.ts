export { MemoryStore } from './memory.ts';
export type { Store, StoreRange, StoreReader, StoreWriter } from './types.ts';
