import { beforeEach, expect, test } from 'vitest';
import { CallTurns } from '../../src/dispatch/call-turns.ts';
import { defaultLimits } from '../../src/limits.ts';
import { ByteLedger } from '../../src/transport/byte-ledger.ts';
import { FrameTurns } from '../../src/transport/frame-turns.ts';

/** 02 §18: frames of WebSockets are read in turns of those who pay for them. */

const limits = { ...defaultLimits, chunkCharge: 10, unreadBytes: 116 };
const most = { ofAddress: 2_000, ofAccount: 2_000, ofStrangers: 2_000, total: 2_000 };
let turns: CallTurns;
let ledger: ByteLedger;
let log: string[];
let paused: PromiseWithResolvers<void> | undefined;
/** Whether a frame that pays is followed by a pause. */
let isInDebt: boolean;
beforeEach(() => {
  paused = undefined;
  isInDebt = false;
  turns = new CallTurns({ monotonic: () => 0 });
  ledger = new ByteLedger({ ...most, evict: 'grown' });
  log = [];
});

/** A connection of an owner. */
function connection(owner: string): FrameTurns {
  return new FrameTurns({
    ...{ context: { limits }, turns, payer: () => owner },
    hold: ledger.open({ kind: 'account', id: owner }, () => log.push('evicted')),
    read: (bytes) => log.push(`${owner} ${Buffer.from(bytes)}`),
    charge: (bytes) => {
      log.push(`${owner} pays ${bytes}`);
      if (isInDebt) paused ??= Promise.withResolvers();
    },
    pause: () => paused?.promise,
    filled: (isFull) => log.push(`${owner} ${isFull ? 'full' : 'goes on'}`),
  });
}

/** A chunk of frames, and perhaps of the begin of another. */
function add(frames: FrameTurns, names: readonly string[], begin = '', charge = 0): boolean {
  let end = 0;
  const ends = names.map((name) => (end += name.length));
  const bytes = Buffer.from(names.join('') + begin);
  const rest = { frames: 0, hasEnded: true, isUnfinished: false };
  return frames.add(bytes, { ends, charge: bytes.length + charge, ...rest });
}

const turn = () => new Promise<void>((go) => setImmediate(go));
async function until(isOver: () => boolean): Promise<void> {
  while (!isOver()) await turn();
}

test('a burst is read in several turns of the event loop, a frame of another owner between', async () => {
  const [ann, bob] = [connection('ann'), connection('bob')];
  const names = Array.from({ length: 150 }, (_, index) => `<${index}>`);
  add(ann, names);
  add(bob, ['hi']);
  await turn();
  expect(log.filter((entry) => entry.startsWith('ann <')).length).toBeLessThanOrEqual(128);
  expect(log.indexOf('bob hi')).toBeLessThan(5);
  await until(() => log.includes('ann <149>'));
  expect(log.filter((entry) => entry.startsWith('ann <'))).toEqual(names.map((n) => `ann ${n}`));
});

test('frames keep their order; what ends no frame takes no turn', async () => {
  const ann = connection('ann');
  add(ann, [], 'be');
  expect(log).toEqual(['ann be']);
  add(ann, ['gun', 'two'], 'th');
  add(ann, [], 're');
  add(ann, ['e']);
  add(ann, ['four']);
  expect(log).toEqual(['ann be']);
  await until(() => log.includes('ann four'));
  expect(log.slice(1)).toEqual(['ann gun', 'ann twoth', 'ann re', 'ann e', 'ann four']);
  expect(ledger.total).toBe(0);
});

test('what waits counts, stops the reading above a limit, and is refused above that of its owner', async () => {
  const ann = connection('ann');
  expect(add(ann, ['x'.repeat(45), 'y'.repeat(45)])).toBe(true);
  expect(ledger.total).toBe(116);
  expect(add(ann, ['z'])).toBe(true);
  expect(ledger.total).toBe(135);
  expect(log).toEqual(['ann full']);
  await until(() => ledger.total === 0);
  expect(log.slice(3)).toEqual(['ann goes on', 'ann z']);
  expect(add(ann, ['x'.repeat(2_000)])).toBe(false);
  expect(ledger.total).toBe(0);
});

test('02 §18: each frame pays when it is read, and while it is paused the next ones wait', async () => {
  const ann = connection('ann');
  isInDebt = true;
  add(ann, ['one', 'two', 'three'], '', 30);
  for (let count = 0; count < 20; count += 1) await turn();
  expect(log).toEqual(['ann one', 'ann pays 10']);
  isInDebt = false;
  const { resolve } = paused as unknown as PromiseWithResolvers<void>;
  paused = undefined;
  resolve();
  await until(() => log.includes('ann three'));
  expect(log.filter((entry) => entry === 'ann pays 10')).toHaveLength(3);
});

test('after the end of its connection, nothing more is read', async () => {
  const ann = connection('ann');
  add(ann, ['one', 'two']);
  ann[Symbol.dispose]();
  expect(ledger.total).toBe(0);
  await turn();
  await turn();
  expect(log).toEqual([]);
});
