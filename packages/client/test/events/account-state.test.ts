/** The state of an account for views: no change is missed, whenever it comes. */
import { afterEach, expect, test, vi } from 'vitest';
import { AccountState } from '../../src/events/account-state.ts';
import { MemoryStore } from '../../src/index.ts';

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** A state whose status is one number of the store. */
function counted() {
  const store = new MemoryStore();
  const read = async () => Number((await store.read((tx) => tx.get('numbers', 'n'))) ?? 0);
  const state = new AccountState(store, read);
  const write = (n: number) => store.write((tx) => tx.put('numbers', 'n', `${n}`));
  const subscribe = (changed: () => void) => void ends.push(state.subscribe(changed));
  return { state, write, subscribe, status: () => state.getSnapshot()?.status };
}

test('what a listener changes is in a later snapshot (decision 0034)', async () => {
  const { write, subscribe, status } = counted();
  subscribe(() => {
    if (status() === 0) void write(1);
  });
  await vi.waitFor(() => expect(status()).toBe(1));
});

test('a change is in a snapshot, however soon it comes after another one (decision 0034)', async () => {
  for (let distance = 0; distance < 60; distance += 1) {
    const { write, subscribe, status } = counted();
    subscribe(() => undefined);
    await write(1);
    for (let turn = 0; turn < distance; turn += 1) await Promise.resolve();
    await write(2);
    await vi.waitFor(() => expect(status()).toBe(2), { interval: 1 });
  }
});

test('a store that fails once leaves the snapshot; the next change is in it (decision 0034)', async () => {
  const store = new MemoryStore();
  let isBroken = true;
  const state = new AccountState(store, async () => {
    if (isBroken) throw new Error('broken');
    return 'whole';
  });
  const read = vi.spyOn(store, 'read');
  ends.push(state.subscribe(() => undefined));
  await vi.waitFor(() => expect(read).toHaveBeenCalled());
  await store.write((tx) => tx.put('a', 'k', 'v'));
  expect(state.getSnapshot()).toBeUndefined();
  isBroken = false;
  await store.write((tx) => tx.put('a', 'k', 'w'));
  await vi.waitFor(() => expect(state.getSnapshot()?.status).toBe('whole'));
});
