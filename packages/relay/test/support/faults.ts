import { expect } from 'vitest';
import type { AggregateKey, Writer } from '../../src/storage/types.ts';
import type { InProcessRelay } from './in-process-relay.ts';
import type { ServedRelay } from './served-relay.ts';

const writes = /^\s*(INSERT|UPDATE|DELETE)/i;

/**
 * Repeats a call that changes storage, each time with storage failing at another of its writes and
 * then at the commit; every time nothing may be left of it and no notice published. Ends with the
 * call that nothing disturbs, and says how many faults came before it.
 */
export async function throughEveryFault(
  relay: InProcessRelay,
  call: () => Promise<string>,
): Promise<number> {
  const before = await relay.dump();
  relay.takeNotices();
  relay.faults.beforeCommit = () => {
    throw new Error('fault of the test');
  };
  expect(await call()).toBe('internal_error');
  delete relay.faults.beforeCommit;
  for (let faults = 0; ; faults += 1) {
    expect(await relay.dump()).toEqual(before);
    expect(relay.takeNotices()).toEqual([]);
    const code = await withFailingWrite(relay, faults, call);
    if (code === 'ok') return faults;
    expect(code).toBe('internal_error');
  }
}

/**
 * Does something while one write fails.
 *
 * @param before number of writes that succeed before it
 */
export async function withFailingWrite<T>(
  { faults }: Pick<InProcessRelay, 'faults'>,
  before: number,
  act: () => Promise<T>,
): Promise<T> {
  let left = before;
  faults.beforeStatement = (sql) => {
    if (!writes.test(sql)) return;
    if (left === 0) throw new Error('fault of the test');
    left -= 1;
  };
  try {
    return await act();
  } finally {
    delete faults.beforeStatement;
  }
}

/**
 * Does something once, between the commit of the next write with such a statement and what waits
 * for it.
 */
export function onceCommitted(
  { server, faults }: ServedRelay,
  statement: string,
  act: () => Promise<void>,
): void {
  const { storage } = server.context;
  const { write } = storage;
  let isNear = false;
  faults.beforeStatement = (sql) => {
    isNear ||= sql.includes(statement);
  };
  storage.write = async <T>(
    aggregates: AggregateKey | readonly AggregateKey[],
    work: (tx: Writer) => Promise<T>,
  ) => {
    const value = await write.call(storage, aggregates, work);
    if (isNear) {
      delete faults.beforeStatement;
      storage.write = write;
      isNear = false;
      await act();
    }
    return value as T;
  };
}

/**
 * Runs a job that ends at one of its commits, and the process with it; what follows runs in
 * another.
 *
 * @param commits those before
 */
export async function crashJob(relay: InProcessRelay, job: string, commits: number): Promise<void> {
  let left = commits;
  const { faults } = relay;
  const process = new AbortController();
  faults.beforeCommit = () => {
    left -= 1;
    if (left >= 0) return;
    process.abort();
    throw new Error('crash of the test');
  };
  await expect(relay.runJob(job, process.signal)).rejects.toThrow('crash of the test');
  delete faults.beforeCommit;
  await relay.restart();
}

/** Lets every write of one group, channel or account fail, until it is disposed of. */
export function breakOwner(relay: InProcessRelay, owner: AggregateKey): Disposable {
  const { storage } = relay.context;
  const { write } = storage;
  storage.write = async (aggregates, work) => {
    if ([aggregates].flat().includes(owner)) throw new Error('fault of the test');
    return (await write.call(storage, aggregates, work)) as never;
  };
  return {
    [Symbol.dispose]() {
      storage.write = write;
    },
  };
}
