import { readRelayResponse } from '@posthouse/protocol/federation';
import { parseJson } from '@posthouse/protocol/json';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { RelayAnswer, RelayClient, RelayContext } from '../../src/context.ts';
import { encodeRequest } from '../../src/dispatch/envelope.ts';
import type { Person } from '../fixtures/person.ts';
import { codeOf } from '../support/http.ts';
import { InProcessRelay } from '../support/in-process-relay.ts';
import { ServedRelay } from '../support/served-relay.ts';
import type { WebSocketClient } from '../support/websocket.ts';

/** 03 §5.1, §8: queries about an account at home elsewhere, in each form that a transport has. */

let relay: ServedRelay;
let home: InProcessRelay;
let ann: Person;
let ben: Person;
let token: string;
let socket: WebSocketClient;
/** Answers instead of the home relay. */
let answer: RelayAnswer | undefined;

beforeAll(async () => {
  home = await InProcessRelay.start();
  ann = await home.register('ann');
  await ann.publishProfile();
  relay = await ServedRelay.start();
  ben = await relay.register('ben');
  ({ token } = await relay.logInDevice(ben));
  socket = await relay.socket();
  await relay.bindDevice(socket, ben.device());
  const context = relay.server.context as { -readonly [N in keyof RelayContext]: RelayContext[N] };
  const routes = await home.rows('account_routes');
  context.routeDirectory = {
    ...context.routeDirectory,
    hasRelays: true,
    resolveRemote: async () => ({
      routes: routes.map(({ route }) => parseJson(route as string) as never),
      ...{ unverified: [], missed: [], claimed: [], nearest: [] },
    }),
  };
  context.relayClient = { ...context.relayClient, call: callHome };
});
beforeEach(() => {
  answer = undefined;
});
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
  await home[Symbol.asyncDispose]();
});

const callHome: RelayClient['call'] = async (_relayId, method, params) => {
  if (answer !== undefined) return answer;
  const frame = new TextEncoder().encode(encodeRequest(1, method, params));
  const reply = await home.answerRelay(frame, relay);
  if (reply.kind !== 'answer') throw new Error('not answered');
  return readRelayResponse(reply.text, 1);
};

const signed = () => ben.stateQuery(ann.account, ann.invite());

test('the public form over GET, POST and WebSocket gives the same state', async () => {
  const params = { account: ann.account };
  const { result } = await socket.call('device.state.resolve', params);
  expect(result).toMatchObject(params);
  for (const verb of ['GET', 'POST']) {
    const http = await relay.http().call('device.state.resolve', params, { token, verb });
    expect(JSON.parse(http.text)).toEqual(result);
  }
});

test('the signed form over POST and WebSocket; GET refuses it', async () => {
  const { result } = await socket.call('device.state.resolve', signed());
  expect(result).toMatchObject({ account: ann.account });
  const post = await relay.http().call('device.state.resolve', signed(), { token, verb: 'POST' });
  expect(JSON.parse(post.text)).toEqual(result);
  const path = `/device/state/resolve?account=${encodeURIComponent(ann.account)}&created_at=1`;
  const headers = { 'x-svc-session': token };
  expect(codeOf(await relay.http().send({ verb: 'GET', path, headers }))).toBe('bad_request');
});

test('a profile over GET and WebSocket', async () => {
  const params = { account: ann.account };
  const { result } = await socket.call('profile.resolve', params);
  expect(result).toMatchObject({ profile: params });
  const http = await relay.http().call('profile.resolve', params, { token });
  expect(JSON.parse(http.text)).toEqual(result);
});

test('07 §C9: rate_limited of the home relay has Retry-After over HTTP', async () => {
  answer = { kind: 'refused', code: 'rate_limited', message: 'slow down', retryAfter: 30 };
  const params = { account: ann.account };
  const { error } = await socket.call('profile.resolve', params);
  expect(error).toMatchObject({ code: -32030, data: { retry_after: 30 } });
  const http = await relay.http().call('profile.resolve', params, { token });
  expect(http.status).toBe(429);
  expect(http.headers['retry-after']).toBe('30');
});

test('07 §C4: an internal error of the home relay has its code and text', async () => {
  answer = { kind: 'refused', code: 'internal_error', message: 'internal error of the other' };
  const { error } = await socket.call('profile.resolve', { account: ann.account });
  expect(error).toMatchObject({ code: -32603, message: 'internal error of the other' });
});
