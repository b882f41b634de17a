import { expect, test } from 'vitest';
import { ReadTurns } from '../../src/transport/read-turns.ts';

/** 0019: large bodies are read over several turns of the event loop. */

const turn = () => new Promise<void>((go) => setImmediate(go));

test('0019: a turn is full after 256 KiB, and the next one is empty again', async () => {
  const turns = new ReadTurns();
  expect(turns.count(262_143)).toBe(false);
  expect(turns.count(1)).toBe(true);
  await turn();
  expect(turns.count(1)).toBe(false);
});

test('0019: four connections go on in each turn, in rotation of their owners', async () => {
  const turns = new ReadTurns();
  const resumed: string[] = [];
  const wait = async (owner: string) => {
    await turns.take(owner);
    resumed.push(owner);
  };
  for (let count = 0; count < 6; count += 1) void wait('eve');
  void wait('ann');
  await turn();
  expect(resumed).toHaveLength(4);
  expect(resumed).toContain('ann');
  await turn();
  expect(resumed).toHaveLength(7);
});

test('0019: one body that is copied whole takes a turn', async () => {
  const turns = new ReadTurns();
  let copied = 0;
  const copy = async (owner: string) => {
    await turns.take(owner, 2_097_152);
    copied += 1;
  };
  for (const owner of ['ann', 'bob', 'eve']) void copy(owner);
  for (const expected of [1, 2, 3]) {
    await turn();
    expect(copied).toBe(expected);
  }
});
