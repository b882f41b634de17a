import '../dispose-symbols.ts';
import type { Store, StoreReader, StoreWriter } from './types.ts';
import { Watchers } from './watchers.ts';

/** Returns a store that can be watched: the store itself, or one that notices its own commits. */
export function watched(store: Store): Store {
  if (store.watch !== undefined) return store;
  const watchers = new Watchers();
  const lock = store.lock?.bind(store);
  return {
    read: <T>(work: (tx: StoreReader) => Promise<T>) => store.read(work),
    async write<T>(work: (tx: StoreWriter) => Promise<T>): Promise<T> {
      const result = await store.write(work);
      watchers.notify();
      return result;
    },
    ...(lock !== undefined && { lock }),
    watch: (changed) => watchers.add(changed),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}
