/** An account that moves from one relay to another, seen by clients of all three. */
import type { JsonObject } from '@posthouse/protocol/json';
import { expect, test } from 'vitest';
import type { Person } from '../fixtures/person.ts';
import { backUpRoute, doubtRoutes } from '../support/put-back.ts';
import type { ServedRelay } from '../support/served-relay.ts';
import { differences } from './received.ts';
import { relayNetwork, sendTo, statusOf } from './relay-network.ts';

const network = relayNetwork();

/** The relay that a relay names as an account's home. */
async function homeAt(relay: ServedRelay, account: string): Promise<string> {
  const answer = await relay.http().call('account.route.resolve', { account });
  return (JSON.parse(answer.text) as { relay_id: string }).relay_id;
}

/** Calls `account.route.resolve` of a relay as another relay would ask: whether it still serves. */
async function serves(relay: ServedRelay, asking: ServedRelay, person: Person): Promise<string> {
  const answer = await asking.server.context.relayClient.call(relay.relayId, 'device.status', {
    account: person.account,
    device_id: person.device().deviceId,
  });
  return answer.kind === 'refused' ? answer.code : answer.kind;
}

test('07 §B12: when the move has been answered, the old relay no longer serves the account', async () => {
  const { a, b, c } = network;
  const ben = await network.register('ben', b);
  expect(await serves(b, a, ben)).toBe('result');
  await ben.moveTo(c);
  expect(await serves(b, a, ben)).toBe('route_stale');
  expect(await homeAt(b, ben.account)).toBe(c.relayId);
  expect(await serves(c, a, ben)).toBe('result');
  const profile = ben.profile() as unknown as JsonObject;
  await expect(
    b.call('profile.publish', profile, { session: ben.session() }),
  ).rejects.toMatchObject({ code: 'route_stale' });
});

test('03 §12.2: the old relay still lets devices read what arrived before', async () => {
  const { a, b, c } = network;
  const ann = await network.register('ann', a);
  const ben = await network.register('ben', b);
  const first = await sendTo(a, ann, ben);
  expect(await network.fateAfterRetries(a, first)).toBe('ok');
  await ben.moveTo(c);
  const second = await sendTo(a, ann, ben);
  expect(await network.fateAfterRetries(a, second)).toBe('ok');
  expect(await differences([first, second], new Map([[ben, [b, c]]]))).toEqual([]);
});

test('07 §C8: mail in flight follows the account, and arrives once', async () => {
  const { a, b, c } = network;
  const ann = await network.register('ann', a);
  const ben = await network.register('ben', b);
  network.cables.b.cut();
  network.cables.a.cut();
  const sent = await sendTo(a, ann, ben);
  expect(await statusOf(a, sent)).toMatchObject({ status: 'delivering' });
  await network.heal();
  const [, again] = await Promise.all([ben.moveTo(c), sendTo(a, ann, ben)]);
  for (const one of [sent, again]) {
    expect(await network.fateAfterRetries(a, one)).toBe('ok');
  }
  expect(await differences([sent, again], new Map([[ben, [b, c]]]))).toEqual([]);
});

test('07 §C8: an answer lost before a move does not double the message', async () => {
  const { a, b, c } = network;
  const ann = await network.register('ann', a);
  const ben = await network.register('ben', b);
  const warm = await sendTo(a, ann, ben);
  expect(await network.fateAfterRetries(a, warm)).toBe('ok');
  // All ways break when B has stored the message, before it answers.
  const { promise: stored, resolve } = Promise.withResolvers<void>();
  const watch = b.server.context.bus.subscribe((notice) => {
    if (notice.kind !== 'timeline' || notice.account !== ben.account) return;
    network.cutAll();
    resolve();
  });
  const sent = await sendTo(a, ann, ben);
  await stored;
  watch[Symbol.dispose]();
  expect(await statusOf(a, sent)).toMatchObject({ status: 'delivering' });
  for (const cable of Object.values(network.cables)) cable.restore();
  await ben.moveTo(c);
  await network.heal();
  expect(await network.fateAfterRetries(a, sent)).toBe('ok');
  expect(await differences([warm, sent], new Map([[ben, [b, c]]]))).toEqual([]);
});

test('07 §B12: an old relay that cannot be reached does not block the move, and learns of it later', async () => {
  const { a, b, c } = network;
  const ben = await network.register('ben', b);
  network.cables.b.cut();
  await ben.moveTo(c);
  expect(await homeAt(c, ben.account)).toBe(c.relayId);
  await network.heal();
  await network.untilInTime(async () => (await serves(b, a, ben)) === 'route_stale');
});

test('07 §B12: a move that no other relay stores is in force all the same, and they learn of it later', async () => {
  const { a, b, c } = network;
  const ben = await network.register('ben', b);
  expect(await homeAt(c, ben.account)).toBe(b.relayId);
  network.cutAll();
  await expect(ben.moveTo(c)).rejects.toMatchObject({ code: 'temporarily_unavailable' });
  expect(await homeAt(c, ben.account)).toBe(c.relayId);
  expect(await homeAt(b, ben.account)).toBe(b.relayId);
  await network.heal();
  await network.untilInTime(async () => (await serves(b, a, ben)) === 'route_stale');
  expect(await homeAt(a, ben.account)).toBe(c.relayId);
});

test('07 §B12: a relay that was away for an hour is not counted among those that must store a route', async () => {
  const { a, b, c } = network;
  const ben = await network.register('ben', b);
  network.cutAll();
  await expect(ben.moveTo(c)).rejects.toMatchObject({ code: 'temporarily_unavailable' });
  network.advance(3_599);
  await expect(ben.moveTo(c)).rejects.toMatchObject({ code: 'temporarily_unavailable' });
  network.advance(1);
  await ben.moveTo(c);
  await network.heal();
  await network.untilInTime(async () => (await homeAt(a, ben.account)) === c.relayId);
});

test('07 §B12: an old relay that the new one does not know learns of the move after healing', async () => {
  const { a, b, c } = network;
  const ben = await network.register('ben', b);
  await c.server.context.storage.write(`account:${ben.account}`, (tx) =>
    tx.run('DELETE FROM account_routes WHERE account = ?', ben.account),
  );
  network.cutAll();
  await expect(ben.moveTo(c)).rejects.toMatchObject({ code: 'temporarily_unavailable' });
  await network.heal();
  await network.untilInTime(async () => (await serves(b, a, ben)) === 'route_stale');
});

test('03 §12: an account that comes back is at home where it began, with all messages', async () => {
  const { a, b, c } = network;
  const ann = await network.register('ann', a);
  const ben = await network.register('ben', b);
  const sent = [await sendTo(a, ann, ben)];
  expect(await network.fateAfterRetries(a, sent[0]!)).toBe('ok');
  for (const home of [c, b]) {
    await ben.moveTo(home);
    const one = await sendTo(a, ann, ben);
    expect(await network.fateAfterRetries(a, one)).toBe('ok');
    sent.push(one);
  }
  expect(await differences(sent, new Map([[ben, [b, c]]]))).toEqual([]);
  await network.untilInTime(async () => (await serves(c, a, ben)) === 'route_stale');
});

test('04 §17.1, 07 §B12: a restored relay serves no account before the network was asked where it is', async () => {
  const { a, b, c } = network;
  const ben = await network.register('ben', b);
  const dan = await network.register('dan', b);
  const putBack = await backUpRoute(b, ben);
  await ben.moveTo(c);
  await putBack();
  await doubtRoutes(b, [ben, dan]);
  // A relay that was restored has begun again, and remembers no lookup.
  network.advance(31);
  expect(await serves(b, a, ben)).toBe('route_stale');
  expect(await homeAt(b, ben.account)).toBe(c.relayId);
  // The other one is where it was.
  expect(await serves(b, a, dan)).toBe('result');
});

test('04 §17.1, 07 §B12: a restored relay that reaches no other waits for one, for an hour', async () => {
  const { b } = network;
  const dan = await network.register('dan', b);
  await doubtRoutes(b, [dan]);
  network.cutAll();
  const resolve = () => b.call('account.route.resolve', { account: dan.account });
  const refused = { code: 'temporarily_unavailable' };
  // A lookup uses what is left of a connection, the next one finds the relay out of reach.
  for (const seconds of [0, 61, 3_538]) {
    network.advance(seconds);
    await expect(resolve()).rejects.toMatchObject(refused);
  }
  network.advance(92);
  expect(await resolve()).toMatchObject({ relay_id: b.relayId });
  await network.heal();
});
