/** Channel subscriptions over real sockets: everything that depends on a connection. */
import { errorCatalogue } from '@posthouse/protocol';
import { beforeEach, expect, test } from 'vitest';
import { TestChannel } from '../fixtures/channel.ts';
import { nextHint, receivedHints } from '../fixtures/hints.ts';
import { codeOf } from '../support/http.ts';
import { ServedRelay, servedRelay } from '../support/served-relay.ts';

const relay = servedRelay({ host: { channels: true }, limits: { channelSubscriptions: 2 } });
const ann = relay.person('ann');
const ben = relay.person('ben', ['phone', 'laptop']);
let channel: TestChannel;
const wellFormed = `chan_${'A'.repeat(22)}`;

beforeEach(async () => {
  channel = await TestChannel.create(relay, ann);
});

const only = () => ({ channel_ids: [channel.channelId] });
const publish = async (devices: string[]) => {
  const { token } = await relay.logInAccount(ben);
  const state = await ben.state({ devices });
  expect(codeOf(await relay.http().call('device.state.publish', state, { token }))).toBe('ok');
};

test('06 §8: the method does not exist over HTTP', async () => {
  const { token } = await relay.logInDevice(ben);
  const body = JSON.stringify(only());
  const length = String(Buffer.byteLength(body));
  const headers = {
    'content-type': 'application/json',
    'content-length': length,
    'x-svc-session': token,
  };
  for (const verb of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    const answer = await relay.http().send({ verb, path: '/channel/subscribe', headers, body });
    expect([verb, answer.status, codeOf(answer)]).toEqual([verb, 400, 'method_not_found']);
  }
});

test('06 §9.1: the answer is null, and errors name the channels', async () => {
  const socket = await relay.socket();
  const { rpc: unauthorized } = errorCatalogue.unauthorized;
  expect(await socket.call('channel.subscribe', only())).toHaveProperty('error.code', unauthorized);
  await relay.bindDevice(socket, ben.device());
  expect(await socket.call('channel.subscribe', only())).toHaveProperty('result', null);
  const channel_ids = [wellFormed, channel.channelId];
  const { error } = await socket.call('channel.subscribe', { channel_ids });
  expect(error).toMatchObject({
    code: errorCatalogue.not_found.rpc,
    data: { channel_ids: [wellFormed] },
  });
  const twice = await socket.call('channel.subscribe', { channel_ids: [wellFormed, wellFormed] });
  expect(twice.error).toMatchObject({ code: errorCatalogue.bad_request.rpc });
  expect(twice.error).not.toHaveProperty('data');
});

test('02 §12.3: an account session cannot subscribe', async () => {
  const socket = await relay.socket();
  await relay.bindAccount(socket, ben);
  const answer = await socket.call('channel.subscribe', only());
  expect(answer).toHaveProperty('error.code', errorCatalogue.forbidden.rpc);
});

test('06 §9.2: a write over HTTP notifies every subscriber', async () => {
  const [socket, other] = [
    await relay.withChannels(ben, [channel]),
    await relay.withChannels(ann, [channel]),
  ];
  await channel.post();
  for (const each of [socket, other]) {
    expect(await each.notification()).toEqual({
      jsonrpc: '2.0',
      method: 'channel.timeline.changed',
      params: { channel_id: channel.channelId, head: 1 },
    });
  }
});

test('06 §9.2: the event can be read when its hint arrives', async () => {
  const socket = await relay.withChannels(ben, [channel]);
  await channel.post();
  const [, head] = await nextHint(socket);
  const params = { channel_id: channel.channelId, after: 0 };
  const { result } = await socket.call('channel.read', params);
  expect(result).toMatchObject({ events: [{ sequence: head }] });
});

test('02 §10.6: a set outlasts a renewal, and a new connection starts with an empty one', async () => {
  const socket = await relay.withChannels(ben, [channel]);
  await relay.bindDevice(socket, ben.device());
  await channel.post();
  expect(await nextHint(socket)).toEqual(['timeline', 1]);
  const again = await relay.socket();
  await relay.bindDevice(again, ben.device());
  await channel.post();
  expect(await nextHint(socket)).toEqual(['timeline', 2]);
  expect(await receivedHints(again)).toEqual([]);
});

test('02 §13: the connections of one device have sets of their own', async () => {
  const second = await TestChannel.create(relay, ann);
  const [one, two] = [
    await relay.withChannels(ben, [channel]),
    await relay.withChannels(ben, [second]),
  ];
  await channel.post();
  expect(await nextHint(one)).toEqual(['timeline', 1]);
  expect(await receivedHints(two)).toEqual([]);
  one[Symbol.dispose]();
  await second.post();
  expect(await nextHint(two)).toEqual(['timeline', 1]);
});

test('02 §10.3: a removed device gets no more hints', async () => {
  const laptop = await relay.withChannels(ben, [channel], { device: 'laptop' });
  const phone = await relay.withChannels(ben, [channel]);
  await publish(['phone']);
  await channel.post();
  expect(await nextHint(phone)).toEqual(['timeline', 1]);
  expect(await receivedHints(laptop)).toEqual([]);
  const { rpc: unauthorized } = errorCatalogue.unauthorized;
  expect(await laptop.call('channel.subscribe', only())).toHaveProperty('error.code', unauthorized);
});

test('02 §10.2: a device whose session expired gets no more hints', async () => {
  await ben.addDevice('laptop', { expiresAt: relay.clock.now() + 3_000 });
  await publish(['phone', 'laptop']);
  const laptop = await relay.withChannels(ben, [channel], { device: 'laptop' });
  const phone = await relay.withChannels(ben, [channel]);
  relay.clock.advance(2_999);
  await channel.post();
  expect(await nextHint(laptop)).toEqual(['timeline', 1]);
  relay.clock.advance(1);
  await channel.post();
  for (const head of [1, 2]) expect(await nextHint(phone)).toEqual(['timeline', head]);
  expect(await receivedHints(laptop)).toEqual([]);
});

test('02 §12.9: after a restart there are no subscriptions, and hints continue from the head', async () => {
  await channel.post();
  await relay.restart();
  const socket = await relay.withChannels(ben, [channel]);
  expect(await receivedHints(socket)).toEqual([]);
  await channel.post();
  expect(await nextHint(socket)).toEqual(['timeline', 2]);
});

test('06 §9.1: the method does not exist at a relay that does not host channels', async () => {
  await using plain = await ServedRelay.start({ host: { channels: false } });
  const socket = await plain.socket();
  await plain.bindDevice(socket, (await plain.register('cem')).device());
  const answer = await socket.call('channel.subscribe', { channel_ids: [] });
  expect(answer).toHaveProperty('error.code', errorCatalogue.method_not_found.rpc);
});
