/** Channels over HTTP and over WebSocket; hints have a file of their own. */
import {
  type ChannelPage,
  type ErrorCode,
  errorCatalogue,
  limits,
  type MethodName,
  ProtocolError,
  verifyChannelPage,
} from '@posthouse/protocol';
import { canonicalJson, type JsonValue } from '@posthouse/protocol/json';
import { describe, expect, test } from 'vitest';
import type { DeviceSession } from '../../src/sessions/session.ts';
import { attachment, TestChannel, text } from '../fixtures/channel.ts';
import type { HomeRelay, Person } from '../fixtures/person.ts';
import { codeOf } from '../support/http.ts';
import { network } from '../support/in-process-relay.ts';
import { ServedRelay, servedRelay } from '../support/served-relay.ts';
import type { WebSocketClient } from '../support/websocket.ts';

/** Its configuration is the default one: channels are hosted. */
const relay = servedRelay();
const ann = relay.person('ann');
const ben = relay.person('ben');

/** Calls over one WebSocket connection for each person. */
function overSocket(at: ServedRelay): HomeRelay {
  const sockets = new Map<string, WebSocketClient>();
  return {
    clock: at.clock,
    relayId: at.relayId,
    call: async (method, params, { session } = {}) => {
      const { account } = session as DeviceSession;
      const person = [ann, ben].find((each) => each.account === account) as Person;
      const socket = sockets.get(account) ?? (await at.socket());
      if (!sockets.has(account)) await at.bindDevice(socket, person.device());
      sockets.set(account, socket);
      const { error, result } = await socket.call(method, params);
      if (error === undefined) return result as JsonValue;
      const [code] = Object.entries(errorCatalogue).find(([, { rpc }]) => rpc === error.code) ?? [];
      throw new ProtocolError(code as ErrorCode, error.message);
    },
  };
}
const grounds = { HTTP: () => relay, WebSocket: () => overSocket(relay) };
const codeFrom = (act: Promise<unknown>) =>
  act.then(
    () => 'ok',
    (error: ProtocolError) => error.code,
  );

/** Makes each kind of call to a channel once; returns the answers. */
async function live(ground: HomeRelay): Promise<{ answers: unknown[]; channel: TestChannel }> {
  const nonce = 'A'.repeat(22);
  const channel = await TestChannel.create(ground, ann, { nonce, moderators: [ben.account] });
  const by = { by: ben };
  const answers: unknown[] = [await channel.resolve(undefined, by)];
  const post = channel.newPost({ message_id: `msg_${nonce}`, body: text('x') }, by);
  answers.push(await channel.publish(post, by), await channel.publish(post, by));
  answers.push(await channel.edit(1, { body: null, attachments: [photo], extra: 'ü' }));
  answers.push(await channel.edit(1, { attachments: [photo] }, by));
  await channel.update({ name: 'y', description: '' });
  answers.push(await channel.resolve(1), await channel.read(), await channel.read({ before: 2 }));
  await channel.delete(1, { reason: 'r' });
  answers.push(await channel.read({ after: -1, limit: 2 }));
  answers.push(await codeFrom(channel.delete(1)), await codeFrom(channel.edit(9, { a: 1 })));
  answers.push(await codeFrom(channel.publish({ ...post, message_id: 'x' })));
  answers.push(await codeFrom(channel.update({ name: 'z' }, by)));
  answers.push(await codeFrom(channel.read({ after: 99 })));
  await channel.close();
  answers.push(await codeFrom(channel.post()), await channel.publish(post, by));
  answers.push(await channel.read(), await channel.resolve());
  return { answers, channel };
}
const photo = attachment();

test('06 §14: over HTTP and WebSocket a channel behaves the same, and verifies', async () => {
  const http = await live(relay);
  await using other = await ServedRelay.start();
  for (const person of [ann, ben]) {
    const { token } = await other.logInAccount(person);
    for (const [method, params] of [
      ['device.state.publish', await person.state()],
      ['account.route.publish', await person.route({ relay_id: other.relayId })],
    ] as const) {
      expect(codeOf(await other.http().call(method, params, { token }))).toBe('ok');
    }
  }
  const socket = await live(overSocket(other));
  // Each relay has its own keys, on which IDs and signatures depend.
  const shape = ({ answers, channel }: typeof http) => {
    const ids = new RegExp(`${channel.channelId}|0x[0-9a-f]{40}|"device_signature":"[^"]*"`, 'g');
    return JSON.parse(
      JSON.stringify(answers).replace(ids, (id) => (id[0] === '"' ? '"s":""' : '')),
    );
  };
  expect(shape(socket)).toEqual(shape(http));
  const codes = http.answers.filter((answer) => typeof answer === 'string');
  const wanted = ['state_conflict', 'not_found', 'bad_request', 'forbidden', 'bad_request'];
  expect(codes).toEqual([...wanted, 'state_conflict']);
  const page = http.answers.at(-2) as ChannelPage;
  const { channelId } = http.channel;
  const known = { channelId, relayId: relay.relayId };
  const { events, missing, refused } = verifyChannelPage(network, page, known);
  expect({ missing, refused }).toEqual({ missing: [], refused: [] });
  expect(events.map(({ kind }) => kind)).toEqual([
    'descriptor',
    'descriptor',
    'delete',
    'descriptor',
  ]);
});

describe.each(['HTTP', 'WebSocket'] as const)('06 §12: over %s', (transport) => {
  test('the largest objects can be written and read', async () => {
    const ground = grounds[transport]();
    const descriptor = 'd'.repeat(3_000);
    const channel = await TestChannel.create(ground, ann, {
      description: descriptor,
      a: descriptor,
    });
    const room =
      limits.channelContentBytes - Buffer.byteLength(canonicalJson(channel.newPost(body(0))));
    const largest = channel.newPost(body(room));
    expect(await codeFrom(channel.post(body(room + 1)))).toBe('request_too_large');
    for (let count = 1; count <= 20; count += 1) {
      const { message_id } = channel.newPost();
      expect(await channel.post({ ...body(room), message_id })).toBe(count);
    }
    expect(await channel.publish(largest)).toBe(21);
    const page = await channel.read();
    expect(page.has_more).toBe(true);
    expect(page.events.at(-1)?.payload).toEqual(largest);
    expect(Buffer.byteLength(JSON.stringify(page))).toBeLessThan(limits.webSocketMessageBytes);
    const rest = await channel.read({ before: page.events[0]?.sequence as number });
    const sequences = [...rest.events, ...page.events].map(({ sequence }) => sequence);
    expect(sequences).toEqual(Array.from({ length: 22 }, (_, index) => index));
  });
});
const body = (length: number) => ({ body: text('x'.repeat(length)) });

test('06 §8: statuses and verbs of the HTTP form', async () => {
  const { token } = await relay.logInDevice(ann);
  const channel = TestChannel.draft(relay, ann);
  const { channelId: channel_id } = channel;
  const call = async (name: MethodName, params: object) => {
    const { status, text: answer } = await relay.http().call(name, params, { token });
    return [status, answer === '' ? undefined : JSON.parse(answer)];
  };
  expect(await call('channel.create', channel.descriptor)).toEqual([204, undefined]);
  expect(await call('channel.post', channel.newPost())).toEqual([200, { sequence: 1 }]);
  const edit = channel.newEdit(1, { mood: 'good', none: null });
  expect(await call('channel.post.edit', edit)).toEqual([204, undefined]);
  expect(await call('channel.post.edit', edit)).toEqual([204, undefined]);
  const report = { channel_id, target_sequence: 1, reason: 'spam' };
  expect(await call('channel.post.report', report)).toEqual([204, undefined]);
  expect(await call('channel.read', { channel_id })).toMatchObject([200, { has_more: false }]);
  expect(await call('channel.resolve', { channel_id, revision: 0 })).toMatchObject([200, {}]);
  expect(await call('channel.post.delete', channel.newDeletion(1))).toEqual([204, undefined]);
  const next = channel.nextDescriptor({ name: 'x' });
  expect(await call('channel.update', next)).toEqual([204, undefined]);
  channel.descriptor = next;
  expect(await call('channel.close', channel.closure())).toEqual([204, undefined]);
  const failed = async (name: MethodName, params: object) => {
    const [status, answer] = await call(name, params);
    return [status, answer.code];
  };
  expect(await failed('channel.post', channel.newPost())).toEqual([409, 'state_conflict']);
  expect(await failed('channel.resolve', { channel_id, revision: 9 })).toEqual([404, 'not_found']);
  const tampered = { ...channel.newPost(), extra: 1 };
  expect(await failed('channel.post', tampered)).toEqual([400, 'invalid_signature']);
  const old = TestChannel.draft(relay, ann, { created_at: 1 }).descriptor;
  expect(await failed('channel.create', old)).toEqual([400, 'clock_skew']);
});

test('06 §8.11: the query form', async () => {
  const channel = await TestChannel.create(relay, ann);
  await channel.post();
  const { token } = await relay.logInDevice(ben);
  const get = async (query: string, headers: object = { 'x-svc-session': token }) => {
    const path = `/channel/read?channel_id=${channel.channelId}${query}`;
    const answer = await relay.http().send({ verb: 'GET', path, headers: { ...headers } });
    if (codeOf(answer) !== 'ok') return codeOf(answer);
    return (JSON.parse(answer.text) as ChannelPage).events.map(({ sequence }) => sequence);
  };
  expect(await get('')).toEqual([0, 1]);
  expect(await get('&after=-1&limit=1')).toEqual([0]);
  expect(await get('&before=1')).toEqual([0]);
  expect(await get('&before=0')).toEqual([]);
  expect(await get('&after=1&unknown=x')).toEqual([]);
  const wrong = [
    'after=-2',
    'after=01',
    'after=',
    'before=-1',
    'limit=0',
    'after=2',
    'after=0&after=0',
  ];
  for (const each of [...wrong, 'before=1&after=0', 'limit=1.0']) {
    expect([each, await get(`&${each}`)]).toEqual([each, 'bad_request']);
  }
  expect(await get('', {})).toBe('unauthorized');
  const { token: account } = await relay.logInAccount(ben);
  expect(await get('', { 'x-svc-session': account })).toBe('forbidden');
});

test('06 §7.2: after a restart, answered writes exist and repeats are recognised', async () => {
  const channel = await TestChannel.create(relay, ann);
  const post = channel.newPost();
  await channel.publish(post);
  await channel.edit(1, { mood: 'good' });
  const before = await channel.read();
  await relay.restart();
  expect(await channel.read()).toEqual(before);
  expect(await channel.publish(post)).toBe(1);
  expect(await channel.post()).toBe(3);
});

test('06 §1: a relay that does not host channels has none of their methods', async () => {
  await using plain = await ServedRelay.start({ host: { channels: false } });
  const person = await plain.register('ann');
  const { token } = await plain.logInDevice(person);
  const params = { channel_id: `chan_${'A'.repeat(22)}` };
  const answer = await plain.http().call('channel.read', params, { token });
  expect(codeOf(answer)).toBe('method_not_found');
});
