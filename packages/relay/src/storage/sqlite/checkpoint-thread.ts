/** A thread that copies the log of a SQLite database into the database; see `checkpoints.ts`. */
import { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import type { LogFrames } from './checkpoints.ts';

const { path } = workerData as { readonly path: string };
const connection = new DatabaseSync(path);
// Passive: it waits for no other connection, and holds none up.
const checkpoint = connection.prepare('PRAGMA wal_checkpoint(PASSIVE)');

parentPort?.on('message', (message: 'copy' | 'close') => {
  if (message === 'close') {
    connection.close();
    parentPort?.close();
    return;
  }
  parentPort?.postMessage(copy());
});

function copy(): LogFrames | undefined {
  try {
    return { ...checkpoint.get() } as unknown as LogFrames;
  } catch {
    // A full or failing disk: the log keeps what it has, and the relay asks again.
    return undefined;
  }
}
