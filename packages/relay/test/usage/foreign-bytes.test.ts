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
