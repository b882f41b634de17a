/** Decision 0025: the log is copied in a thread, and stays bounded. */
import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import { DatabaseSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { silentObserver } from '../support/silent-observer.ts';
import { sqliteThings } from '../support/sqlite-things.ts';

const mebibyte = 1_048_576;
/** Bytes of the largest batch of these tests. */
const batch = 4 * mebibyte;

let stopped: unknown[];

beforeEach(() => {
  stopped = [];
});
const checkpointsStopped = (error: unknown) => void stopped.push(error);
const sqlite = sqliteThings({
  columns: 'text TEXT',
  observer: { ...silentObserver, checkpointsStopped },
});

const logBytes = () => statSync(`${sqlite.database}-wal`).size;

/** Writes so many MiB, and overwrites them the next time, so that the database stays small. */
async function write(mebibytes: number): Promise<void> {
  await sqlite.storage.write('x', (tx) => tx.run('DELETE FROM things'));
  for (let written = 0; written < mebibytes; written += 2) {
    const text = 'x'.repeat(mebibyte);
    await Promise.all(
      [1, 2].map(() =>
        sqlite.storage.write('x', (tx) => tx.run('INSERT INTO things (text) VALUES (?)', text)),
      ),
    );
  }
}

/** Frames of the log, and how many of them are copied. */
function frames(): { readonly log: number; readonly checkpointed: number } {
  using connection = new DatabaseSync(sqlite.database);
  return connection.prepare('PRAGMA wal_checkpoint(NOOP)').get() as never;
}

test('while much is written, the log has at most 32 MiB and a batch', async () => {
  let most = 0;
  for (let round = 0; round < 20; round += 1) {
    await write(10);
    most = Math.max(most, logBytes());
  }
  expect(most).toBeGreaterThan(16 * mebibyte);
  expect(most).toBeLessThan(32 * mebibyte + batch);
});

test('reads of several turns that overlap without a pause do not let it grow', async () => {
  let isOver = false;
  const read = async () => {
    while (!isOver) {
      await sqlite.storage.read(async (tx) => {
        for (let count = 0; count < 1_200; count += 1) await tx.get('SELECT 1 FROM things');
      });
    }
  };
  const reading = Promise.all([read(), read(), read(), read()]);
  let most = 0;
  for (let round = 0; round < 20; round += 1) {
    await write(10);
    most = Math.max(most, logBytes());
  }
  isOver = true;
  await reading;
  expect(most).toBeLessThan(96 * mebibyte);
});

test('when nothing more is written, all of the log is copied', async () => {
  await write(24);
  await vi.waitFor(() => expect(frames().checkpointed).toBe(frames().log), { timeout: 30_000 });
});

describe('a reader that stays', () => {
  /** Has the log grow under a reader; returns how often the thread was asked to copy meanwhile. */
  async function writeUnderReader(rounds: number): Promise<number> {
    const post = vi.spyOn(Worker.prototype, 'postMessage');
    using reader = new DatabaseSync(sqlite.database);
    reader.exec('BEGIN');
    reader.prepare('SELECT count(*) FROM things').get();
    for (let round = 0; round < rounds; round += 1) await write(10);
    const copies = post.mock.calls.length;
    post.mockRestore();
    return copies;
  }

  test('lets the log grow, and is no reason to copy more often than every 16 MiB', async () => {
    const copies = await writeUnderReader(8);
    expect(logBytes()).toBeGreaterThan(60 * mebibyte);
    expect(copies).toBeGreaterThan(1);
    // For each 16 MiB, what is there, and the rest that was written meanwhile.
    expect(copies).toBeLessThanOrEqual((2 * logBytes()) / (16 * mebibyte));
  });

  test('when it has ended, the log starts anew and is bounded as before', async () => {
    await writeUnderReader(6);
    await vi.waitFor(
      async () => {
        await write(2);
        expect(frames().log).toBeLessThan(4_096);
      },
      { timeout: 30_000 },
    );
    let most = 0;
    for (let round = 0; round < 6; round += 1) {
      await write(10);
      most = Math.max(most, frames().log);
    }
    expect(most * 4_096).toBeLessThan(32 * mebibyte + batch);
  });
});

test('while the thread opens and closes the database, locks on it exclude other processes', async () => {
  const begin = `
    const { DatabaseSync } = require('node:sqlite');
    new DatabaseSync(process.argv[1]).exec('BEGIN IMMEDIATE');
  `;
  const lock = () => spawnSync(process.execPath, ['-e', begin, sqlite.database]).stderr.toString();
  await write(24);
  await vi.waitFor(() => expect(frames().checkpointed).toBe(frames().log), { timeout: 30_000 });
  expect(lock()).toBe('');
  let error = '';
  await sqlite.storage.write('x', async () => {
    error = lock();
  });
  expect(error).toContain('database is locked');
});

test('if the thread dies, this is told, and SQLite copies the log in its commits', async () => {
  const post = vi.spyOn(Worker.prototype, 'postMessage').mockImplementation(function (
    this: Worker,
  ) {
    void this.terminate();
  });
  await write(24);
  await vi.waitFor(() => expect(stopped).toHaveLength(1), { timeout: 30_000 });
  post.mockRestore();
  await write(24);
  expect(frames().log).toBeLessThan(4_096);
});

test.each<[string, (thread: Worker) => void]>([
  ['is ending by itself', (thread) => void thread.terminate()],
  ['fails', (thread) => void thread.emit('error', new Error('out of memory'))],
])('closing waits for a thread that %s at that moment', async (_, fail) => {
  await write(24);
  await vi.waitFor(() => expect(frames().checkpointed).toBe(frames().log), { timeout: 30_000 });
  const threads: Worker[] = [];
  const post = vi.spyOn(Worker.prototype, 'postMessage').mockImplementation(function (
    this: Worker,
    message,
  ) {
    threads.push(this);
    fail(this);
    post.mockRestore();
    this.postMessage(message);
  });
  await sqlite.storage[Symbol.asyncDispose]();
  // A thread that has ended has no number.
  expect(threads.map(({ threadId }) => threadId)).toEqual([-1]);
  expect(stopped).toEqual([]);
});

test('if the system permits no thread, this is told, and SQLite copies the log in its commits', async () => {
  const threads = createRequire(import.meta.url)('node:worker_threads');
  const { Worker } = threads;
  threads.Worker = function refused() {
    throw new Error('ERR_WORKER_INIT_FAILED: EAGAIN');
  };
  syncBuiltinESMExports();
  try {
    await write(48);
  } finally {
    threads.Worker = Worker;
    syncBuiltinESMExports();
  }
  expect(stopped).toHaveLength(1);
  expect(frames().log).toBeLessThan(4_096);
});
