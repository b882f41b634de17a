import { readFileSync, writeFileSync } from 'node:fs';
import type { JsonObject, JsonValue } from '@posthouse/protocol/json';
import { expect, test, vi } from 'vitest';
import { Person } from '../fixtures/person.ts';
import { patience, ServedNetwork } from '../support/served-network.ts';
import { ServedRelay } from '../support/served-relay.ts';

/** Calls a method of relay RPC from one relay to another. */
async function ask(
  from: ServedRelay,
  to: ServedRelay,
  [method, params]: [
    'device.status' | 'profile.resolve' | 'device.state.resolve' | 'message.deliver',
    JsonObject,
  ],
) {
  return await from.server.context.relayClient.call(to.relayId, method, params);
}

async function timelineOf(relay: ServedRelay, person: Person): Promise<JsonObject[]> {
  const page = await relay.call('message.timeline.sync', {}, { session: person.session() });
  return (page as { items: JsonObject[] }).items;
}

test('07 §C5, §C6, §C7: relays answer each other over real sockets', async () => {
  await using network = await ServedNetwork.start(2);
  const [a, b] = network.pair;
  const ann = await a.register('ann');
  await ann.publishProfile({ nickname: 'Ann' });
  const { account } = ann;
  const device_id = ann.device().deviceId;
  expect(await ask(b, a, ['device.status', { account, device_id }])).toEqual({
    kind: 'result',
    value: { status: 'active', expires_at: ann.device().certificate.expires_at },
  });
  expect(await ask(b, a, ['profile.resolve', { account }])).toMatchObject({
    kind: 'result',
    value: { profile: { account, nickname: 'Ann' } },
  });
  expect(await ask(b, a, ['device.state.resolve', { account }])).toMatchObject({
    kind: 'result',
    value: { account, certificates: [ann.device().certificate] },
  });
  expect(await ask(b, a, ['message.deliver', {}])).toMatchObject({
    kind: 'refused',
    code: 'bad_request',
  });
  const { metrics } = b.server.context;
  expect(metrics.value('relay_calls', { method: 'device.status', code: 'ok' })).toBe(1);
  const codes = { method: 'message.deliver', code: 'bad_request' };
  expect(metrics.value('relay_calls', codes)).toBe(1);
});

test('07 §B7: a route is found at the relay that has it, by relays that never saw it', async () => {
  await using network = await ServedNetwork.start(3);
  const [a, b] = network.pair;
  const ann = await a.register('ann');
  const bob = await b.register('bob');
  for (const relay of network.relays) {
    const resolve = async ({ account }: Person) =>
      (await relay.call('account.route.resolve', { account })) as JsonObject;
    expect(await resolve(ann)).toMatchObject({ account: ann.account, relay_id: a.relayId });
    expect(await resolve(bob)).toMatchObject({ account: bob.account, relay_id: b.relayId });
    const unknown = new Person(relay, 'without an account');
    await expect(resolve(unknown)).rejects.toMatchObject({ code: 'not_found' });
  }
});

test('07 §B6: a relay that could not be asked is asked again as soon as it is back', async () => {
  await using network = await ServedNetwork.start(2);
  const [a, b] = network.pair;
  const { account } = await b.register('bob');
  const lookUp = () => a.call('account.route.resolve', { account });
  // As if it had never been sent the route.
  await a.server.context.storage.write(`account:${account}`, (tx) =>
    tx.run('DELETE FROM account_routes'),
  );
  await b.stop();
  await expect(lookUp()).rejects.toMatchObject({ code: 'not_found' });
  await b.restart();
  await network.connected();
  // Past the time for which a missing route is remembered, within the pause after a failed question.
  const { routeNotFound, dhtPause } = a.server.context.limits;
  expect(routeNotFound + 1).toBeLessThan(dhtPause);
  a.clock.advance(routeNotFound + 1);
  expect(await lookUp()).toMatchObject({ account, relay_id: b.relayId });
});

test('07 §C8: a message travels to the recipient on another relay, and its status back', async () => {
  await using network = await ServedNetwork.start(2);
  const [a, b] = network.pair;
  const ann = await a.register('ann');
  const bob = await b.register('bob');
  await bob.publishProfile({ public_discovery: true });
  const message = ann.message(bob);
  const { message_id } = message.envelope;
  await a.call('message.send', message, { session: ann.session() });
  const status = async (): Promise<JsonValue> =>
    await a.call('message.delivery.status', { message_id }, { session: ann.session() });
  await vi.waitFor(async () => {
    expect(await status()).toMatchObject({ status: 'target_accepted' });
  }, patience);
  const [item] = await timelineOf(b, bob);
  expect(item).toMatchObject({ envelope: { message_id } });
});

test('07 §B12: the relay that an account leaves is informed, and answers route_stale', async () => {
  await using network = await ServedNetwork.start(2);
  const [a, b] = network.pair;
  const ann = await a.register('ann');
  const { account } = ann;
  expect(await b.call('account.route.resolve', { account })).toMatchObject({ relay_id: a.relayId });
  const moved = new Person(b, 'ann');
  await moved.addDevice('phone');
  const session = moved.accountSession();
  await b.call('device.state.publish', await moved.state({ revision: 5_000 }), { session });
  await b.call('account.route.publish', await moved.route({ revision: 5_000 }), { session });
  const device_id = ann.device().deviceId;
  expect(await ask(b, a, ['device.status', { account, device_id }])).toMatchObject({
    kind: 'refused',
    code: 'route_stale',
  });
  expect(await a.call('account.route.resolve', { account })).toMatchObject({ relay_id: b.relayId });
});

test('07 §C8: a message waits for a stopped relay, and is delivered when that relay connects', async () => {
  await using network = await ServedNetwork.start(2);
  const [a, b] = network.pair;
  const ann = await a.register('ann');
  const bob = await b.register('bob');
  await bob.publishProfile({ public_discovery: true });
  // The route is known before the relay stops.
  await a.call('account.route.resolve', { account: bob.account });
  const bobsRelay = b.relayId;
  await b.stop();
  const message = ann.message(bob);
  const { message_id } = message.envelope;
  await a.call('message.send', message, { session: ann.session() });
  const { context } = a.server;
  await vi.waitFor(() => {
    expect(context.relayClient.pausedUntil(bobsRelay)).toBeDefined();
  }, patience);
  await b.restart();
  // No clock moves: the relay that connects ends its pause.
  await vi.waitFor(async () => {
    const status = { message_id };
    const session = ann.session();
    expect(await a.call('message.delivery.status', status, { session })).toMatchObject({
      status: 'target_accepted',
    });
  }, patience);
  expect(await timelineOf(b, bob)).toHaveLength(1);
  expect(context.relayClient.pausedUntil(bobsRelay)).toBeUndefined();
});

test('07 §B5: a relay that the registry suspends is dropped at once, and may come back', async () => {
  await using network = await ServedNetwork.start(2);
  const [a, b] = network.pair;
  const ann = await a.register('ann');
  const query = { account: ann.account, device_id: ann.device().deviceId };
  const change = (from: string, to: string) => {
    const file = JSON.parse(readFileSync(network.registryFile, 'utf8'));
    for (const entry of file.relays) {
      if (entry.relay_id === b.relayId) entry.status = entry.status.replace(from, to);
    }
    writeFileSync(network.registryFile, JSON.stringify(file));
  };
  change('active', 'suspended');
  // Relay a looks every two seconds; its connection is the only one.
  a.clock.advance(2);
  const connected = () =>
    network.relays.map(({ server }) =>
      server.context.metrics.value('peers', { state: 'connected' }),
    );
  await vi.waitFor(() => expect(connected()).toEqual([0, 0]), patience);
  expect(await ask(b, a, ['device.status', query])).toEqual({ kind: 'unreachable' });
  expect(await ask(a, b, ['device.status', query])).toEqual({ kind: 'unreachable' });
  change('suspended', 'active');
  a.clock.advance(61);
  b.clock.advance(61);
  expect(await ask(b, a, ['device.status', query])).toMatchObject({ kind: 'result' });
});

test('07 §B7: a relay without a listener for others is alone, and warns', async () => {
  await using relay = await ServedRelay.start({ federation: { listen: '' } });
  const { context, peerPort } = relay.server;
  expect(peerPort).toBeUndefined();
  expect(context.metrics.value('no_peer_listener')).toBe(1);
  const unknown = `0x${'1'.repeat(40)}`;
  expect(await context.relayClient.call(unknown, 'device.status', {})).toEqual({
    kind: 'unreachable',
  });
  expect(await context.routeDirectory.resolveRemote('neo:1:x')).toEqual({
    ...{ routes: [], unverified: [], missed: [], claimed: [], nearest: [] },
  });
});
