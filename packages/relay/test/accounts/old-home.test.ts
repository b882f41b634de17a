/** What a relay still does for an account that left it, method by method (03 §12.2, 07 §B12). */
import type { DeliveryStatus, TimelinePage } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { beforeEach, describe, expect, test } from 'vitest';
import { defaultLimits } from '../../src/limits.ts';
import type { DeviceSession } from '../../src/sessions/session.ts';
import { Person, type SendParams } from '../fixtures/person.ts';
import { signIn, signInCode } from '../fixtures/sign-in.ts';
import type { InProcessRelay } from '../support/in-process-relay.ts';
import { wiredRelays } from '../support/wired-relays.ts';

const unlimited = {
  relayRate: 1e9,
  relayBurst: 1e9,
  relayAccountRate: 1e9,
  relayAccountBurst: 1e9,
};
const wired = wiredRelays(3, unlimited);
const [old, next, third] = wired.relays as [InProcessRelay, InProcessRelay, InProcessRelay];
const retention = defaultLimits.messageRetention;

let ann: Person;
let ben: Person;
let session: DeviceSession;
let toAnn: SendParams;
let toBen: SendParams;
let toHerself: SendParams;

/** The parameters with which another relay delivers a message. */
function delivery(from: Person, { sender_boxes: _, ...message }: SendParams): JsonObject {
  const signer_certificate = from.device().certificate;
  return { ...message, signer_certificate } as unknown as JsonObject;
}

/** Calls the old relay as the third one does. */
async function asRelay(method: string, params: JsonObject): Promise<string> {
  const answer = await third.context.relayClient.call(
    old.relayId,
    method as 'device.status',
    params,
  );
  return answer.kind === 'refused' ? answer.code : answer.kind;
}

const timeline = async (after = -1) =>
  (await old.call('message.timeline.sync', { after }, { session })) as unknown as TimelinePage;
const idsOf = ({ items }: TimelinePage) => items.map(({ envelope }) => envelope.message_id);
const statusOf = async ({ envelope }: SendParams) =>
  (await old.call(
    'message.delivery.status',
    { message_id: envelope.message_id },
    { session },
  )) as unknown as DeliveryStatus;
const code = (method: string, params: unknown) => old.codeOf(method, params, { session });
const byKey = (method: string, params: unknown) =>
  old.codeOf(method, params, { session: ann.accountSession() });

beforeEach(async () => {
  ann = await Person.register(old, 'ann', ['phone', 'laptop']);
  ben = await Person.register(third, 'ben', ['phone']);
  session = await signIn(old, ann);
  toHerself = ann.message(ann);
  await old.call('message.send', toHerself, { session });
  toAnn = ben.message(ann, { authorization: ann.grant(ben) });
  expect(await asRelay('message.deliver', delivery(ben, toAnn))).toBe('result');
  toBen = ann.message(ben, { authorization: ben.grant(ann), senders: ['phone'] });
  await old.call('message.send', toBen, { session });
  await ann.publishProfile();
  wired.advance(10);
  await ann.moveTo(next);
  wired.calls.length = 0;
});

describe('03 §12.2: the relay that an account left', () => {
  test('serves its timeline to sessions that were open and to new ones', async () => {
    const ids = [toHerself, toAnn, toBen].map(({ envelope }) => envelope.message_id);
    expect(idsOf(await timeline())).toEqual(ids);
    session = await signIn(old, ann);
    expect(idsOf(await timeline())).toEqual(ids);
    expect(idsOf(await timeline(1))).toEqual(ids.slice(2));
  });

  test('keeps the visibility: a device reads only what had a box for it', async () => {
    const more = ben.message(ann, { authorization: ann.grant(ben), boxes: ['laptop'] });
    // Delivered before; the same call after the move appends nothing.
    await ann.moveTo(old);
    expect(await asRelay('message.deliver', delivery(ben, more))).toBe('result');
    await ann.moveTo(next);
    expect(idsOf(await timeline())).not.toContain(more.envelope.message_id);
    session = await signIn(old, ann, 'laptop');
    expect(idsOf(await timeline())).toContain(more.envelope.message_id);
    expect(idsOf(await timeline())).not.toContain(toBen.envelope.message_id);
  });

  test('finishes the deliveries that it accepted, and tells their status', async () => {
    expect(await statusOf(toBen)).toMatchObject({ status: 'delivering' });
    await old.runJob('messages.delivery');
    expect(await statusOf(toBen)).toMatchObject({ status: 'target_accepted' });
    expect(await statusOf(toHerself)).toMatchObject({ status: 'target_accepted' });
    const inbox = (await third.call(
      'message.timeline.sync',
      {},
      { session: ben.session() },
    )) as unknown as TimelinePage;
    expect(idsOf(inbox)).toEqual([toBen.envelope.message_id]);
  });

  test('confirms what it received before, and accepts nothing new', async () => {
    expect(await asRelay('message.deliver', delivery(ben, toAnn))).toBe('result');
    const other = ben.message(ann, { authorization: ann.grant(ben) });
    expect(await asRelay('message.deliver', delivery(ben, other))).toBe('route_stale');
    expect(await old.rows('timeline_records')).toHaveLength(3);
  });

  test.each([
    ['message.send', () => ann.message(ann)],
    ['message.send', () => ann.message(ben, { authorization: ben.grant(ann) })],
    ['profile.publish', () => ann.profile()],
    ['device.state.resolve', () => ({ account: ann.account })],
  ] as const)('refuses %s as the home that it is no longer', async (method, params) => {
    const before = await old.dump();
    expect(await code(method, params())).toBe('route_stale');
    expect(await old.dump()).toEqual(before);
  });

  test('owes no idempotent answer to message.send', async () => {
    expect(await code('message.send', toHerself)).toBe('route_stale');
  });

  test('refuses the account key too, and stages a state for a way back', async () => {
    expect(await byKey('device.state.resolve', { account: ann.account })).toBe('route_stale');
    expect(await byKey('account.route.publish', await ann.route({ relay_id: old.relayId }))).toBe(
      'state_conflict',
    );
    expect(await byKey('device.state.publish', await ann.state())).toBe('ok');
    expect(await old.rows('staged_states')).toHaveLength(1);
  });

  test.each([
    ['device.status', () => ({ account: ann.account, device_id: ann.device().deviceId })],
    ['device.state.resolve', () => ({ account: ann.account })],
    ['profile.resolve', () => ({ account: ann.account })],
  ] as const)('answers %s of other relays with route_stale', async (method, params) => {
    expect(await asRelay(method, params())).toBe('route_stale');
  });

  test('07 §C7: has no profile of its own for the account any more', async () => {
    const eve = await Person.register(old, 'eve');
    const asked = { session: eve.session() };
    expect(await old.codeOf('profile.resolve', { account: ann.account }, asked)).toBe('not_found');
    await next.call('profile.publish', ann.profile({ nickname: 'new' }), {
      session: ann.session(),
    });
    expect(await old.call('profile.resolve', { account: ann.account }, asked)).toMatchObject({
      profile: { nickname: 'new' },
    });
  });

  test('copies and forwards nothing of the timeline', async () => {
    await timeline();
    await statusOf(toBen);
    await old.runJob('messages.delivery');
    const methods = wired.calls.filter(({ from }) => from === old.relayId).map((it) => it.method);
    expect(new Set(methods)).toEqual(new Set(['message.deliver']));
    expect(wired.calls.every(({ to }) => to !== next.relayId)).toBe(true);
    expect(await next.rows('timeline_records')).toEqual([]);
  });

  test('ends with the retention: the gap is told, results are forgotten, nothing is left', async () => {
    await old.runJob('messages.delivery');
    wired.advance(retention + 1);
    await old.runJob('messages.retention');
    session = await signIn(old, ann);
    expect(await timeline()).toMatchObject({ items: [], has_retention_gap: true });
    expect(await code('message.delivery.status', { message_id: toBen.envelope.message_id })).toBe(
      'not_found',
    );
    expect(await old.rows('timeline_records')).toEqual([]);
  });

  test('serves no device that the account removed at its new home', async () => {
    const laptop = await signIn(old, ann, 'laptop');
    ann.devices.delete('laptop');
    await ann.publishState();
    await next.runJob('accounts.status-hints');
    await old.runJob('accounts.remote-devices');
    expect(await old.codeOf('message.timeline.sync', {}, { session: laptop })).toBe('unauthorized');
    expect(await code('message.timeline.sync', {})).toBe('ok');
  });

  test('02 §10.3: while the new home does not answer, open sessions go on and none is opened', async () => {
    wired.cut(old, next);
    expect(await code('message.timeline.sync', {})).toBe('ok');
    expect(await signInCode(old, ann)).toBe('temporarily_unavailable');
  });

  test('04 §17.1: numbers its records above all earlier ones when the account comes back', async () => {
    const { items } = await timeline();
    const last = items.at(-1)?.sequence as number;
    wired.advance(retention + 1);
    await old.runJob('messages.retention');
    await ann.moveTo(old);
    await old.call('message.send', ann.message(ann), { session: ann.session() });
    session = await signIn(old, ann);
    const after = await timeline(last);
    expect(after.items.map(({ sequence }) => sequence > last)).toEqual([true]);
  });
});
