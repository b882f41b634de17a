/** 02 §18: what calls cost, in units. */
import { type ProtocolError, utf8Length } from '@posthouse/protocol';
import { expect, test } from 'vitest';
import { countItems, priceOf } from '../../src/dispatch/prices.ts';
import { TestGroup } from '../fixtures/group.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const burst = 100;
const relay = inProcessRelay({ accountRate: 1, accountBurst: burst });
const ann = relay.person('ann');
const ben = relay.person('ben');

/** Refuses with `bad_request`, for one unit. */
const probe = async (by = ann) =>
  await relay.call('profile.publish', {}, { session: by.session() }).then(
    () => expect.unreachable(),
    (error: ProtocolError) => error,
  );

/** Calls a method with a full allowance; returns the code and the units that the call took. */
async function cost(method: string, params: object = {}, by = ann) {
  relay.clock.advance(2 * burst);
  const code = await relay.codeOf(method, params, { session: by.session() });
  let left = 0;
  while ((await probe(by)).code === 'bad_request') left += 1;
  return { code, units: burst - left };
}

test('the price table', () => {
  expect(priceOf({})).toBe(0);
  expect(priceOf({ bytes: 4_095, items: 19 })).toBe(0);
  expect(priceOf({ bytes: 4_096, items: 20 })).toBe(2);
  expect(priceOf({ bytes: 2_097_152 })).toBe(512);
  expect(priceOf({ signatures: 3, sealedKeys: 50 })).toBe(53);
  expect(countItems({ accounts: ['a', 'b'], members: [{ lists: [1, 2, 3] }], text: 'abc' })).toBe(
    3,
  );
  expect([countItems(null), countItems([1]), countItems('a')]).toEqual([0, 0, 0]);
});

test('a call costs one unit, and one more for each 4 KiB of its parameters', async () => {
  await ann.publishProfile();
  const params = { account: ann.account };
  expect(await cost('profile.resolve', params)).toEqual({ code: 'ok', units: 1 });
  const large = { ...params, unknown: 'x'.repeat(3 * 4_096) };
  expect(await cost('profile.resolve', large)).toEqual({ code: 'ok', units: 4 });
});

test('a refused call costs the same', async () => {
  const params = { revision: 'x'.repeat(2 * 4_096) };
  expect(await cost('profile.publish', params)).toEqual({ code: 'bad_request', units: 3 });
  expect(await cost('no.method', params)).toEqual({ code: 'method_not_found', units: 3 });
  expect(await cost('profile.publish')).toEqual({ code: 'bad_request', units: 1 });
});

test('each signature that is verified costs one unit, and none if it is known', async () => {
  relay.clock.advance(burst);
  await relay.call('profile.publish', ann.profile(), { session: ann.session() });
  // The certificate is known by now.
  expect(await cost('profile.publish', ann.profile())).toEqual({ code: 'ok', units: 2 });
  const forged = { ...ann.profile(), nickname: 'forged' };
  expect(await cost('profile.publish', forged)).toEqual({ code: 'invalid_signature', units: 2 });
});

test('an answer costs by its bytes and its rows', async () => {
  for (let count = 0; count < 40; count += 1) {
    relay.clock.advance(burst);
    await relay.call('message.send', ann.message(ann), { session: ann.session() });
  }
  const answer = await relay.call('message.timeline.sync', {}, { session: ann.session() });
  const bytes = Math.floor(utf8Length(JSON.stringify(answer)) / 4_096);
  const { items, certificates } = answer as unknown as Record<string, readonly unknown[]>;
  expect(items).toHaveLength(40);
  const rows = Math.floor((40 + (certificates?.length ?? 0)) / 20);
  expect(await cost('message.timeline.sync')).toEqual({
    ...{ code: 'ok', units: 1 + bytes + rows },
  });
});

test('05 §13.25: each sealed key costs one unit', async () => {
  relay.clock.advance(burst);
  const group = await TestGroup.create(relay, ann);
  for (let count = 0; count < 3; count += 1) {
    relay.clock.advance(burst);
    await group.rotate();
  }
  const params = { group_id: group.groupId };
  const session = ann.session();
  const { keys } = (await relay.call('group.key.sync', params, { session })) as {
    readonly keys: unknown;
  };
  const bytes = Math.floor(JSON.stringify(keys).length / 4_096);
  expect(keys).toHaveLength(4);
  expect(await cost('group.key.sync', params)).toEqual({ code: 'ok', units: 1 + 4 + bytes });
});

test('05 §13.19: the IDs of a list cost a unit per 20; the caller pays although it may not ban', async () => {
  relay.clock.advance(burst);
  const group = await TestGroup.create(relay, ann);
  const accounts = Array.from({ length: 60 }, (_, index) => `neo:0:${index}`);
  const params = { group_id: group.groupId, accounts };
  expect(await cost('group.member.ban', params, ben)).toEqual({
    ...{ code: 'bad_request', units: 1 + 3 },
  });
});

test('work that costs more than is left makes a debt, of at most one burst', async () => {
  relay.clock.advance(burst);
  const params = { unknown: 'x'.repeat(4 * burst * 4_096) };
  const session = ann.session();
  expect(await relay.codeOf('profile.publish', params, { session })).toBe('bad_request');
  const refusal = { code: 'rate_limited', data: { retry_after: burst + 1 } };
  expect(await probe()).toMatchObject(refusal);
  expect(await probe()).toMatchObject(refusal);
  expect((await probe(ben)).code).toBe('bad_request');
  relay.clock.advance(burst + 1);
  expect((await probe()).code).toBe('bad_request');
});
