import { closeSync, fdatasyncSync, openSync, readSync, writeSync } from 'node:fs';
import type { SqliteConnection } from './connection.ts';

/** Bytes of the log's header, and of the one of each frame, which holds a page. */
const logHeader = 32;
const frameHeader = 24;
/** Bytes read and written at once. */
const chunk = 1_048_576;

/**
 * Makes durable what a process that ended has left in the log: it may have ended before the flush, or
 * because the flush failed. In that case the system may take for written what is not, and a flush
 * alone does nothing. So the bytes are written again, where they are, and then flushed.
 *
 * To copy the log into the database instead would not do: after a power cut, a log whose end is
 * missing would put older pages over those that were copied.
 *
 * @param path of the database
 * @throws Error if the disk refuses; SQLite's, if another process holds the lock
 */
export function settleLog(connection: SqliteConnection, path: string): void {
  const bytes = logBytes(connection);
  if (bytes === 0) return;
  // Other programs, such as commands, do not append meanwhile. What they appended before this is
  // flushed: each of their commits is.
  connection.run('BEGIN IMMEDIATE', []);
  try {
    writeAgain(`${path}-wal`, bytes);
  } finally {
    connection.run('ROLLBACK', []);
  }
}

/** Returns how many bytes of the log are in use. */
function logBytes(connection: SqliteConnection): number {
  const { log } = connection.get('PRAGMA wal_checkpoint(NOOP)', []) as { readonly log: number };
  if (log <= 0) return 0;
  const { page_size: page } = connection.get('PRAGMA page_size', []) as {
    readonly page_size: number;
  };
  return logHeader + log * (frameHeader + page);
}

function writeAgain(path: string, bytes: number): void {
  const file = openSync(path, 'r+');
  try {
    const buffer = Buffer.alloc(Math.min(bytes, chunk));
    for (let at = 0; at < bytes; ) {
      const length = readSync(file, buffer, 0, Math.min(buffer.length, bytes - at), at);
      if (length === 0) throw new Error(`${path} ends early: start the relay again`);
      writeAll(file, buffer.subarray(0, length), at);
      at += length;
    }
    fdatasyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** A full disk may take a part of what it is given. */
function writeAll(file: number, bytes: Uint8Array, at: number): void {
  for (let done = 0; done < bytes.length; ) {
    done += writeSync(file, bytes, done, bytes.length - done, at + done);
  }
}
