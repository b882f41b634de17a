export { MemoryStore } from './memory.ts';
export {
  Collection,
  type Store,
  type StoreRange,
  type StoreReader,
  type StoreWriter,
} from './types.ts';
