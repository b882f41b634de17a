/** Many followers of channels at one process, where all notices arrive. */
import { beforeEach, expect, test, vi } from 'vitest';
import { ChannelListeners } from '../../src/notifications/channel-listeners.ts';
import { batchSize } from '../../src/notifications/fair-scheduler.ts';
import type { Hint } from '../../src/notifications/hint.ts';
import type { Listener } from '../../src/notifications/listener.ts';
import { ManualClock } from '../support/clock.ts';
import { countTurns } from '../support/full-turns.ts';

const many = 5_000;
const patience = { timeout: 10_000, interval: 1 };
const channel = `chan_${'A'.repeat(22)}`;
const other = `chan_${'B'.repeat(21)}A`;

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

let listeners: ChannelListeners;
let audience: Told[];
let clock: ManualClock;

/** Counts what it is told. */
class Told implements Listener {
  readonly account = 'ann';
  readonly deviceId = 'phone';
  readonly session = { id: 'session', expiresAt: Number.MAX_SAFE_INTEGER };
  readonly hints: Hint[] = [];

  hint(hint: Hint): void {
    this.hints.push(hint);
  }

  revoke(): void {}

  cap(): void {}

  drop(): void {}

  leave(_kind: string, id: string): void {
    listeners.leave(this, id);
  }

  get heads(): number[] {
    return this.hints.map(({ text }) => JSON.parse(text).params.head);
  }
}

beforeEach(() => {
  clock = new ManualClock();
  listeners = new ChannelListeners({ sessions: { isCurrent: true }, clock } as never);
  audience = Array.from({ length: many }, () => new Told());
  for (const told of audience) listeners.join(told, channel, 0);
});

const tell = (head: number, id = channel) =>
  listeners.notify({ kind: 'channel-timeline', channel: id, head });
const toldOnes = () => audience.filter(({ hints }) => hints.length > 0);
const last = () => audience.at(-1) as Told;
const everybodyHeard = (head: number) =>
  vi.waitFor(() => expect(last().heads).toContain(head), patience);

test('thousands are told in portions, and others get their turn in between', async () => {
  using turns = countTurns();
  tell(1);
  expect(toldOnes()).toHaveLength(batchSize);
  await everybodyHeard(1);
  expect(turns.count).toBeGreaterThanOrEqual(many / batchSize - 2);
  expect(toldOnes()).toHaveLength(many);
});

test('one hint, encoded once, is for all of them', async () => {
  tell(1);
  await everybodyHeard(1);
  expect(new Set(audience.flatMap(({ hints }) => hints)).size).toBe(1);
});

test('02 §12.3: what comes while they are told becomes one, with the last head', async () => {
  for (let head = 1; head <= 100; head += 1) tell(head);
  await everybodyHeard(100);
  for (const { heads } of audience) expect(heads).toEqual([1, 100]);
});

test('they are told again after as long a rest as telling them took, with what is last then', async () => {
  const first = audience[0] as Told;
  const { hint } = first;
  // As if each pass took 100 ms.
  first.hint = (one) => {
    clock.advance(0.1);
    hint.call(first, one);
  };
  tell(1);
  await everybodyHeard(1);
  for (let head = 2; head <= 9; head += 1) {
    clock.advance(0.0124);
    tell(head);
    await nextTurn();
  }
  expect(last().heads).toEqual([1]);
  clock.advance(0.001);
  await everybodyHeard(9);
  for (const { heads } of audience) expect(heads).toEqual([1, 9]);
  clock.advance(1);
  await nextTurn();
  tell(10);
  expect(first.heads).toEqual([1, 9, 10]);
});

test('heads that were told tell nothing, in whichever order they come', async () => {
  tell(2);
  await everybodyHeard(2);
  for (const head of [1, 2, 0]) tell(head);
  tell(3);
  await everybodyHeard(3);
  for (const { heads } of audience) expect(heads).toEqual([2, 3]);
});

test('nor does a head that the first of them had read when it came', () => {
  tell(0);
  expect(toldOnes()).toEqual([]);
});

test('a small channel hears while a large one is told', async () => {
  let before = -1;
  const follower = new Told();
  follower.hint = () => {
    before = toldOnes().length;
  };
  listeners.join(follower, other, 0);
  tell(1);
  tell(1, other);
  await everybodyHeard(1);
  expect(before).toBeGreaterThan(0);
  expect(before).toBeLessThanOrEqual(batchSize * 2);
});

test('who unsubscribes while the others are told hears no more', async () => {
  tell(1);
  // One of the next turn, and one of the last.
  for (const index of [batchSize, many - 2]) {
    const gone = audience[index] as Told;
    gone.leave('channel', channel);
  }
  await everybodyHeard(1);
  expect(audience[batchSize]?.heads).toEqual([]);
  expect(toldOnes()).toHaveLength(many - 2);
});

test('who subscribes while the others are told hears what it has not read', async () => {
  tell(5);
  const [late, later] = [new Told(), new Told()];
  listeners.join(late, channel, 4);
  listeners.join(later, channel, 5);
  await everybodyHeard(5);
  expect(new Set(late.heads)).toEqual(new Set([5]));
  tell(6);
  await everybodyHeard(6);
  for (const each of [late, later]) expect(each.heads).toContain(6);
});

test('a channel without listeners or pending subscriptions is not stored', async () => {
  const { size } = new Set(listeners.ids());
  expect(size).toBe(1);
  for (const told of audience) told.leave('channel', channel);
  expect(listeners.ids()).toEqual([]);
  tell(1);
  const expected = listeners.expect([channel]);
  tell(7);
  expect(listeners.ids()).toEqual([]);
  const [first] = audience as [Told];
  listeners.join(first, channel, 6);
  expect(first.heads).toEqual([7]);
  first.leave('channel', channel);
  expected[Symbol.dispose]();
  listeners.join(first, channel, 6);
  expect(first.heads).toEqual([7]);
});
