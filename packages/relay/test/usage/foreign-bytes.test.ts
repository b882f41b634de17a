/** 02 §18: what other relays, and accounts at home there, store here in a day. */
import type { JsonObject } from '@posthouse/protocol/json';
import { describe, expect, test } from 'vitest';
import type { DeviceSession } from '../../src/sessions/session.ts';
import { DailyByteCounts } from '../../src/usage/index.ts';
import { TestGroup } from '../fixtures/group.ts';
import { Person } from '../fixtures/person.ts';
import { AwayHome } from '../support/away-home.ts';
import { type InProcessRelay, inProcessRelay } from '../support/in-process-relay.ts';
import { wiredRelays } from '../support/wired-relays.ts';

describe('02 §18: deliveries of another relay', () => {
  const wired = wiredRelays(2);
  const [source, target] = wired.relays as [InProcessRelay, InProcessRelay];
  const ann = source.person('ann');
  const ben = target.person('ben');
  const cat = target.person('cat');

  const delivery = (to = ben): JsonObject => {
    const { sender_boxes: _, ...submitted } = ann.message(to, { authorization: to.grant(ann) });
    return { ...submitted, signer_certificate: ann.device().certificate } as unknown as JsonObject;
  };
  const deliver = (params: JsonObject) =>
    source.context.relayClient.call(target.relayId, 'message.deliver', params);
  const codeOf = async (params: JsonObject) => {
    const answer = await deliver(params);
    return answer.kind === 'refused' ? answer.code : answer.kind;
  };
  const tomorrow = () => 86_400 - (target.clock.now() % 86_400);

  test('above the day of its relay they wait for the next one; accounts here go on', async () => {
    await target.restart({ foreignRelayDailyBytes: 1 });
    const first = delivery();
    expect(await codeOf(first)).toBe('result');
    const before = await target.dump();
    const waiting = delivery(cat);
    expect(await deliver(waiting)).toMatchObject({
      ...{ kind: 'refused', code: 'rate_limited', retryAfter: tomorrow() },
    });
    expect(await target.dump()).toEqual(before);
    await target.call('message.send', ben.message(ben), { session: ben.session() });
    target.clock.advance(tomorrow());
    expect(await codeOf(waiting)).toBe('result');
  });

  test('above the day of its recipient one waits; the recipient sends, and others receive', async () => {
    await target.restart({ accountReceivedDailyBytes: 1 });
    expect(await codeOf(delivery())).toBe('result');
    expect(await codeOf(delivery())).toBe('rate_limited');
    await target.call('message.send', ben.message(ben), { session: ben.session() });
    expect(await codeOf(delivery(cat))).toBe('result');
  });

  test('one sender stores no more than an account of a day', async () => {
    await target.restart({ accountDailyBytes: 1 });
    expect(await codeOf(delivery())).toBe('result');
    expect(await codeOf(delivery(cat))).toBe('rate_limited');
  });

  test('refused ones and repeats count nothing', async () => {
    await target.restart({ foreignRelayDailyBytes: 3_000, accountReceivedDailyBytes: 3_000 });
    const message = delivery();
    expect(JSON.stringify(message).length).toBeGreaterThan(1_000);
    expect(await codeOf({ ...message, recipient_boxes: [] })).toBe('bad_request');
    for (let count = 0; count < 5; count += 1) expect(await codeOf(message)).toBe('result');
    expect(await codeOf(delivery())).toBe('result');
  });
});

describe('07 §C8: an account that one relay filled the inbox of', () => {
  const wired = wiredRelays(3);
  const [loud, quiet, target] = wired.relays as [InProcessRelay, InProcessRelay, InProcessRelay];
  const ben = target.person('ben');

  test('gets messages of other relays, until the next day for the filling one', async () => {
    const deliverFrom = async (source: InProcessRelay, by: Person) => {
      const { sender_boxes: _, ...submitted } = by.message(ben, { authorization: ben.grant(by) });
      const params = { ...submitted, signer_certificate: by.device().certificate };
      const answer = await source.context.relayClient.call(
        ...([target.relayId, 'message.deliver', params as unknown as JsonObject] as const),
      );
      return answer.kind === 'refused' ? answer.code : answer.kind;
    };
    const stranger = await loud.register('stranger');
    const friend = await quiet.register('friend');
    await target.restart({ accountReceivedDailyBytes: 64 });
    expect(await deliverFrom(loud, stranger)).toBe('result');
    expect(await deliverFrom(loud, stranger)).toBe('rate_limited');
    expect(await deliverFrom(quiet, friend)).toBe('result');
    expect(await deliverFrom(quiet, friend)).toBe('rate_limited');
    target.clock.advance(86_400);
    expect(await deliverFrom(loud, stranger)).toBe('result');
  });
});

describe('02 §18: guests', () => {
  const relay = inProcessRelay();
  const ann = relay.person('ann');

  test('count for their home relay too; accounts at home here go on', async () => {
    const home = new AwayHome(relay);
    relay.callRelay = async (_to, method, params) => home.answer(method, params);
    const guest = await Person.register(home, 'guest');
    const session = (await relay.context.sessions.confirm({
      ...{ id: 'session 1', mode: 'device', account: guest.account },
      ...{ deviceId: guest.device().deviceId, expiresAt: 0 },
    })) as DeviceSession;
    expect(session.homeRelay).toBe(home.relayId);
    await relay.restart({ foreignRelayDailyBytes: 1 });
    const create = (by: Person, as: DeviceSession) =>
      relay.codeOf('group.create', TestGroup.draft(relay, by).params, { session: as });
    expect(await create(guest, session)).toBe('ok');
    expect(await create(guest, session)).toBe('rate_limited');
    expect(await create(ann, ann.session())).toBe('ok');
    expect(await create(ann, ann.session())).toBe('ok');
  });
});

/** A delivery of so many bytes by an account of a relay. */
const delivered = (relay: string, bytes: number, by: { recipient?: string; account?: string }) => ({
  ...{ account: `account of ${relay}`, relay, group: undefined, channel: undefined },
  ...{ bytes, isLimited: true, ...by },
});

describe('07 §C8: one recipient', () => {
  const relay = inProcessRelay();
  const limit = 1_024_000;
  const counted = () =>
    new DailyByteCounts({
      ...relay.context,
      limits: { ...relay.context.limits, accountReceivedDailyBytes: limit },
    });
  const full = 'the account received too many bytes today';

  test('above its day each relay has a 64th of it, however many others there are', () => {
    const counts = counted();
    const to = { recipient: 'ben' };
    void counts.add(delivered('large', limit - 1, to), true);
    void counts.require(delivered('large', 1, to));
    void counts.add(delivered('large', 1, to), true);
    expect(() => counts.require(delivered('large', 1, to))).toThrow(full);
    for (let other = 0; other < 100; other += 1) {
      void counts.add(delivered(`of the same operator ${other}`, limit / 64, to), true);
    }
    void counts.require(delivered('small', 1, to));
    void counts.add(delivered('small', limit / 64 - 1, to), true);
    void counts.require(delivered('small', 1, to));
    void counts.add(delivered('small', 1, to), true);
    expect(() => counts.require(delivered('small', 1, to))).toThrow(full);
    // What it delivered to one recipient takes nothing of another one's day.
    void counts.require(delivered('large', 1, { recipient: 'cat' }));
  });

  test('in the 64th of a relay a sender of little has a reserve, also if that of the recipient is used up', () => {
    const counts = counted();
    const share = limit / 64;
    void counts.add(delivered('hostile', limit + limit / 4, { recipient: 'ben' }), true);
    const loud = { recipient: 'ben', account: 'loud' };
    void counts.require(delivered('shared', 1, loud));
    void counts.add(delivered('shared', share, loud), true);
    expect(() => counts.require(delivered('shared', 1, loud))).toThrow(full);
    const quiet = { recipient: 'ben', account: 'quiet' };
    void counts.require(delivered('shared', 1, quiet));
    void counts.add(delivered('shared', share / 4 - 1, loud), true);
    void counts.require(delivered('shared', 1, quiet));
    void counts.add(delivered('shared', 1, loud), true);
    expect(() => counts.require(delivered('shared', 1, quiet))).toThrow(full);
  });

  test('above its day and that of its relay, a sender of little has a reserve of a quarter', () => {
    const counts = counted();
    const loud = { recipient: 'ben', account: 'loud' };
    const quiet = { recipient: 'ben', account: 'quiet' };
    void counts.add(delivered('shared', limit, loud), true);
    void counts.add(delivered('shared', limit / 1_024 - 1, quiet), true);
    void counts.require(delivered('shared', 1, quiet));
    void counts.add(delivered('shared', 1, quiet), true);
    expect(() => counts.require(delivered('shared', 1, quiet))).toThrow(full);
    const third = { recipient: 'ben', account: 'third' };
    void counts.add(delivered('shared', limit / 4 - limit / 1_024 - 1, loud), true);
    void counts.require(delivered('shared', 1, third));
    void counts.add(delivered('shared', 1, loud), true);
    expect(() => counts.require(delivered('shared', 1, third))).toThrow(full);
  });
});

describe('07 §C8: one relay', () => {
  const relay = inProcessRelay();
  const limit = 1_024_000;

  test('above its day, an account of it that stored little has a reserve; removals have more', () => {
    const limits = { ...relay.context.limits, foreignRelayDailyBytes: limit };
    const counts = new DailyByteCounts({ ...relay.context, limits });
    void counts.add(delivered('shared', limit, { account: 'loud' }), true);
    const full = 'the home relay and its accounts stored too many bytes today';
    expect(() => counts.require(delivered('shared', 1, { account: 'loud' }))).toThrow(full);
    void counts.require(delivered('shared', 1, { account: 'quiet' }));
    void counts.add(delivered('shared', limit / 4, { account: 'loud' }), true);
    expect(() => counts.require(delivered('shared', 1, { account: 'quiet' }))).toThrow(full);
    const removal = { ...delivered('shared', 1, { account: 'quiet' }), isLimited: false };
    void counts.require(removal);
    void counts.add(delivered('shared', 1_048_575, { account: 'other' }), true);
    void counts.require(removal);
    void counts.add(delivered('shared', 1, { account: 'other' }), true);
    expect(() => counts.require(removal)).toThrow(full);
  });
});

describe('02 §18: all other relays together', () => {
  const relay = inProcessRelay();

  test('above their day, each has a 64th of it; accounts at home here go on', () => {
    const counts = new DailyByteCounts({
      ...relay.context,
      limits: { ...relay.context.limits, foreignDailyBytes: 64_000 },
    });
    const of = (id: string | undefined, bytes: number) => ({
      ...{ account: `account of ${id}`, relay: id, group: undefined, channel: undefined },
      ...{ bytes, isLimited: true },
    });
    void counts.add(of('large', 63_999), true);
    void counts.require(of('large', 1));
    void counts.add(of('large', 1), true);
    expect(() => counts.require(of('large', 1))).toThrow('other relays and their accounts');
    void counts.require(of('small', 1));
    void counts.add(of('small', 999), true);
    void counts.require(of('small', 1));
    void counts.add(of('small', 1), true);
    expect(() => counts.require(of('small', 1))).toThrow('other relays and their accounts');
    void counts.require(of(undefined, 1));
    // What removes is never refused.
    void counts.require({ ...of('large', 1), isLimited: false });
  });
});
