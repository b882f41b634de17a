/** Many subscribers of one group at one process. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { batchSize } from '../../src/notifications/fair-scheduler.ts';
import { GroupListeners } from '../../src/notifications/group-listeners.ts';
import type { Hint } from '../../src/notifications/hint.ts';
import type { Listener } from '../../src/notifications/listener.ts';
import { recheckBatchSize } from '../../src/notifications/recheck-queue.ts';
import { insertSession } from '../../src/sessions/session-store.ts';
import { TestGroup } from '../fixtures/group.ts';
import { countTurns } from '../support/full-turns.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const many = 5_000;
const patience = { timeout: 10_000, interval: 1 };

const relay = inProcessRelay();
const ann = relay.person('ann');
let group: TestGroup;
let isCurrent: boolean;
let listeners: GroupListeners;
let audience: Told[];

/** Counts what it is told. */
class Told implements Listener {
  readonly account: string;
  readonly deviceId = 'phone';
  readonly session;
  readonly hints: Hint[] = [];
  isRevoked = false;

  constructor(account: string, id: string) {
    this.account = account;
    this.session = { id, expiresAt: Number.MAX_SAFE_INTEGER };
  }

  hint(hint: Hint): void {
    this.hints.push(hint);
  }

  revoke(): void {
    this.isRevoked = true;
    this.leave('group', group.groupId);
  }

  cap(): void {}

  drop(): void {}

  leave(_kind: string, id: string): void {
    listeners.leave(this, id);
  }
}

beforeEach(async () => {
  group = await TestGroup.create(relay, ann);
  isCurrent = true;
  const sessions = {
    get isCurrent() {
      return isCurrent;
    },
  };
  listeners = new GroupListeners({ ...relay.context, sessions } as never);
  audience = Array.from({ length: many }, (_, index) => new Told(ann.account, `s${index}`));
  for (const told of audience) listeners.join(told, group.groupId, 0);
});
afterEach(async () => {
  await listeners[Symbol.asyncDispose]();
});

const tell = (head: number, accessEnded = 0) =>
  listeners.notify({ kind: 'group-timeline', group: group.groupId, head, accessEnded });
const toldOnes = () => audience.filter(({ hints }) => hints.length > 0);
const everybodyHeard = () => vi.waitFor(() => expect(toldOnes()).toHaveLength(many), patience);
const heads = ({ hints }: Told) => hints.map(({ text }) => JSON.parse(text).params.head);
/** Sessions that storage knows. */
const store = (some: readonly Told[]) =>
  relay.context.storage.write('test', async (tx) => {
    for (const { session } of some) {
      const stored = { ...ann.session(), ...session };
      await insertSession(tx, { session: stored, origin: 'https://relay.example' }, 0);
    }
  });

test('thousands are notified in batches, and other work runs in between', async () => {
  using turns = countTurns();
  tell(1);
  // A portion hears at once, and the rest later.
  expect(toldOnes()).toHaveLength(batchSize);
  await everybodyHeard();
  expect(turns.count).toBeGreaterThanOrEqual(many / batchSize - 2);
});

test('one hint, encoded once, is sent to all of them', async () => {
  tell(1);
  await everybodyHeard();
  expect(new Set(audience.flatMap(({ hints }) => hints)).size).toBe(1);
});

test('heads that arrive while they are notified become one hint', async () => {
  for (let head = 1; head <= 100; head += 1) tell(head);
  await vi.waitFor(() => expect(heads(audience.at(-1) as Told)).toContain(100), patience);
  for (const told of audience) expect(heads(told)).toEqual([1, 100]);
});

test('the next notification waits as long as the last one took', async () => {
  const first = audience[0] as Told;
  const { hint } = first;
  // As if each pass took 100 ms.
  first.hint = (one) => {
    relay.clock.advance(0.1);
    hint.call(first, one);
  };
  tell(1);
  await everybodyHeard();
  for (const head of [2, 3, 4]) {
    relay.clock.advance(0.033);
    tell(head);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(heads(audience.at(-1) as Told)).toEqual([1]);
  relay.clock.advance(0.002);
  await vi.waitFor(() => expect(heads(audience.at(-1) as Told)).toContain(4), patience);
  for (const told of audience) expect(heads(told)).toEqual([1, 4]);
});

test('a connection that unsubscribes during a notification gets no hint', async () => {
  tell(1);
  // One of the next turn, and the last one.
  const gone = [audience[batchSize], audience.at(-1)] as Told[];
  for (const told of gone) told.leave('group', group.groupId);
  await vi.waitFor(() => expect(toldOnes()).toHaveLength(many - 2), patience);
  for (const { hints } of gone) expect(hints).toEqual([]);
});

test('no state is kept for a group without subscribers here', async () => {
  for (const told of audience) told.leave('group', group.groupId);
  expect(listeners.ids()).toEqual([]);
  tell(1);
  expect(toldOnes()).toEqual([]);
});

test('known heads notify no connection, in whichever order they arrive', async () => {
  tell(2);
  await everybodyHeard();
  for (const head of [1, 2, 0]) tell(head);
  await new Promise((resolve) => setImmediate(resolve));
  for (const told of audience) expect(heads(told)).toEqual([2]);
});

test('02 §10.3: while notices may be lost, storage decides which subscribers are notified', async () => {
  await store(audience.slice(0, many / 2));
  isCurrent = false;
  await group.update({ name: 'other' });
  tell(1);
  await vi.waitFor(() => expect(toldOnes()).toHaveLength(many / 2), patience);
  await vi.waitFor(() => {
    expect(audience.filter(({ isRevoked }) => isRevoked)).toHaveLength(many / 2);
  }, patience);
  expect(toldOnes()).toEqual(audience.slice(0, many / 2));
  // Lists are no exception.
  const { groupId } = group;
  listeners.notify({ kind: 'group-applications', group: groupId, accounts: [ann.account] });
  const [first] = audience as [Told];
  await vi.waitFor(() => expect(first.hints.at(-1)?.key).toMatch(/^applications/), patience);
});

test('subscribers confirmed since the last departure are not checked again', async () => {
  const { storage } = relay.context;
  const reads = vi.spyOn(storage, 'read');
  tell(1);
  tell(2, 0);
  await everybodyHeard();
  expect(reads).not.toHaveBeenCalled();
});

test('after a departure each subscriber is checked once', async () => {
  await store(audience);
  await group.update({ name: 'other' });
  const reads = vi.spyOn(relay.context.storage, 'read');
  tell(1, 1);
  await everybodyHeard();
  expect(reads).toHaveBeenCalledTimes(many / recheckBatchSize);
  tell(2, 1);
  await vi.waitFor(() => expect(heads(audience.at(-1) as Told)).toContain(2), patience);
  expect(reads).toHaveBeenCalledTimes(many / recheckBatchSize);
});

test('05 §15.2: after a departure few subscribers hear in each turn, as at any event', async () => {
  await store(audience);
  await group.update({ name: 'other' });
  const heardIn = new Map<number, number>();
  using turns = countTurns();
  for (const told of audience) {
    told.hint = (hint) => {
      told.hints.push(hint);
      heardIn.set(turns.count, (heardIn.get(turns.count) ?? 0) + 1);
    };
  }
  tell(1, 1);
  await everybodyHeard();
  expect(Math.max(...heardIn.values())).toBeLessThanOrEqual(2 * batchSize);
});

test('a group that no longer exists has no subscribers', async () => {
  await store(audience);
  await relay.context.storage.write('test', (tx) => tx.run('DELETE FROM groups'));
  tell(1, 1);
  await vi.waitFor(() => expect(listeners.ids()).toEqual([]), patience);
  expect(toldOnes()).toEqual([]);
});
