import type { RelayEntry } from '@posthouse/protocol';
import { expect, test } from 'vitest';
import { deleteUnlisted, readRecords, storeRecords } from '../../src/federation/store.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const relay = inProcessRelay();
const id = `0x${'a'.repeat(40)}`;
const entry = (status: RelayEntry['status']): RelayEntry => ({
  relay_id: id,
  endpoint: `https://${status}.example/svc/v1`,
  status,
  updated_at: 1,
});

const store = (status: RelayEntry['status'], seenAt: number) =>
  relay.context.storage.write('relays', (tx) => storeRecords(tx, [entry(status)], seenAt));
const records = async () => {
  const found = await relay.context.storage.read((tx) => readRecords(tx, 0));
  return found.map(({ entry: { status, endpoint }, seenAt }) => {
    expect(endpoint).toBe(entry(status).endpoint);
    return [status, seenAt];
  });
};

test('07 §B5: a process that read the registry earlier replaces no later reading', async () => {
  await store('suspended', 100_000);
  await store('active', 99_999);
  expect(await records()).toEqual([['suspended', 100_000]]);
  await relay.context.storage.write('relays', (tx) => deleteUnlisted(tx, 100_000));
  expect(await records()).toEqual([['suspended', 100_000]]);
  await store('active', 100_000);
  expect(await records()).toEqual([['active', 100_000]]);
});

test('07 §B5: after a clock was set back, readings are stored again', async () => {
  await store('active', 100_000);
  await store('suspended', 96_400);
  expect(await records()).toEqual([['active', 100_000]]);
  await store('suspended', 96_399);
  expect(await records()).toEqual([['suspended', 96_399]]);
});
