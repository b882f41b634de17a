import { expect, test } from 'vitest';
import { readConnections, storeConnections } from '../../src/federation/connection-store.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const relay = inProcessRelay();

/** Stores what a process is connected with. */
const store = (process: string, now: number, since: Record<string, number>, isAlone = false) =>
  relay.context.storage.write('relays', (tx) =>
    storeConnections(tx, { process, now, since: new Map(Object.entries(since)) }, { isAlone }),
  );
const read = (now: number) => relay.context.storage.read((tx) => readConnections(tx, now));

test('07 §B5: each process has its own rows, and the earliest connection counts', async () => {
  await store('one', 1_000, { b: 900, c: 950 });
  await store('two', 1_010, { b: 800 });
  expect(await read(1_020)).toEqual({
    processes: 2,
    byRelay: new Map([
      ['b', { since: 800, processes: 2 }],
      ['c', { since: 950, processes: 1 }],
    ]),
  });
  await store('two', 1_030, {});
  const { byRelay } = await read(1_040);
  expect(byRelay.get('b')).toEqual({ since: 900, processes: 1 });
});

test('07 §B5: a process that ended without notice counts for three minutes', async () => {
  await store('one', 1_000, { b: 900 });
  expect((await read(1_180)).byRelay.has('b')).toBe(true);
  expect(await read(1_181)).toEqual({ processes: 0, byRelay: new Map() });
  await store('two', 1_181, {});
  const rows = await relay.rows('peer_connections');
  expect(rows.map(({ process }) => process)).toEqual(['two']);
});

test('07 §B5: a relay of one process replaces the rows of its last run', async () => {
  await store('ended', 1_000, { b: 900 }, true);
  await store('one', 1_001, { c: 1_001 }, true);
  expect(await read(1_002)).toEqual({
    processes: 0,
    byRelay: new Map([['c', { since: 1_001, processes: 1 }]]),
  });
});
