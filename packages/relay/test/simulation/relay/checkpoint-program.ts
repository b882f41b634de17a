import { DatabaseSync } from 'node:sqlite';
import type { ThreadProgram } from '../machine/threads.ts';

/** What `storage/sqlite/checkpoint-thread.ts` does. */
export const checkpointProgram: ThreadProgram = (data) => {
  const { path } = data as { readonly path: string };
  const connection = new DatabaseSync(path);
  return () => {
    try {
      return { ...connection.prepare('PRAGMA wal_checkpoint(PASSIVE)').get() };
    } catch {
      return undefined;
    }
  };
};
