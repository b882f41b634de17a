/** An applicant with the app open: how soon it is in, and what that costs (05 §17.3). */
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { patience } from '../../../relay/test/support/patience.ts';
import { pollInterval } from '../../src/follow/application-polls.ts';
import type { Account, AccountEvent } from '../../src/index.ts';
import { isConnected } from '../support/connection-events.ts';
import { LyingRelay } from '../support/lying-relay.ts';
import { StillClock } from '../support/still-clock.ts';
import { club } from './support.ts';

let relay: LyingRelay;
beforeAll(async () => {
  relay = await LyingRelay.start({ host: { groups: true } });
});
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function followed(account: Account): Promise<AccountEvent[]> {
  const stop = new AbortController();
  const seen: AccountEvent[] = [];
  const done = (async () => {
    for await (const event of account.follow({ signal: stop.signal })) seen.push(event);
  })();
  closing.push(async () => {
    stop.abort();
    await done;
  });
  await expect.poll(() => seen.some(isConnected), patience).toBe(true);
  return seen;
}

const polls = () => relay.asked.get('group.sync') ?? 0;

describe('05 §17.3: an applicant that follows', () => {
  test('is a member 5 seconds after the approval, for 24 calls in two minutes of waiting', async () => {
    const clock = new StillClock(relay.world.clock.milliseconds());
    const ann = await relay.world.person();
    const id = await club(ann);
    const bob = await relay.world.person({ clock });
    const seen = await followed(bob);
    await bob.groups.join((await ann.groups.invite(id)).text);
    await expect.poll(() => clock.waits[0], patience).toBe(5_000);
    const before = polls();
    for (let poll = 1; poll <= 23; poll += 1) {
      clock.advance(5_000);
      await expect.poll(polls, patience).toBeGreaterThanOrEqual(before + poll);
      await expect.poll(() => clock.waits[0], patience).toBeLessThanOrEqual(5_000);
    }
    // One each time; a read of everything each minute is two calls more.
    expect(polls() - before).toBeLessThanOrEqual(26);
    expect(seen.some(({ kind }) => kind === 'group-joined')).toBe(false);
    await ann.groups.approve(id, [bob.id]);
    clock.advance(5_000);
    await vi.waitFor(
      () => expect(seen).toContainEqual({ kind: 'group-joined', groupId: id }),
      patience,
    );
    // It is subscribed: the next message needs no time to pass.
    await ann.groups.send(id, { text: 'welcome' });
    await expect.poll(() => seen.some(({ kind }) => kind === 'group-message'), patience).toBe(true);
  });

  test('polls less and less, and once a minute at last', () => {
    const seconds = (age: number, count = 1) => pollInterval(age * 1_000, count) / 1_000;
    expect([0, 60, 120, 240, 1_440, 1e6].map((age) => seconds(age))).toEqual([5, 5, 5, 10, 60, 60]);
    let calls = 0;
    for (let age = 0; age < 3_600; age += seconds(age)) calls += 1;
    expect(calls).toBe(121);
    // A clock that was put back.
    expect(seconds(-1)).toBe(60);
  });

  test('more than 8 applications at one host are polled less often each', () => {
    expect([1, 8, 9, 16, 1_000].map((count) => pollInterval(0, count))).toEqual([
      5_000, 5_000, 10_000, 10_000, 60_000,
    ]);
  });
});
