import type { Challenge } from '@posthouse/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { codeOf } from '../support/http.ts';
import { servedRelay } from '../support/served-relay.ts';
import type { WebSocketClient } from '../support/websocket.ts';

const relay = servedRelay();
const ann = relay.person('ann', ['phone', 'laptop']);
let socket: WebSocketClient;

beforeEach(async () => {
  socket = await relay.socket();
});

const unauthorized = -32001;
const forbidden = -32003;
const sync = (on = socket) => on.call('message.timeline.sync', {});
const nonceOn = async (account = ann.account) =>
  ((await socket.call('auth.challenge', { account })).result as Challenge).nonce;

describe('02 §10.5: an unauthenticated connection', () => {
  test('may authenticate and read what is public, nothing else', async () => {
    expect(await socket.call('relay.info')).toHaveProperty('result.relay_id', relay.relayId);
    expect(await sync()).toHaveProperty('error.code', unauthorized);
  });

  test('does not accept a token of an earlier session', async () => {
    const { token } = await relay.logInDevice(ann);
    expect(await socket.call('message.timeline.sync', { token })).toHaveProperty(
      'error.code',
      unauthorized,
    );
  });
});

describe('02 §10.5: a bound connection', () => {
  beforeEach(async () => void (await relay.bindDevice(socket, ann.device())));

  test('calls what its mode permits', async () => {
    expect(await sync()).toHaveProperty('result.has_more', false);
    expect(await socket.call('account.route.publish', {})).toHaveProperty('error.code', forbidden);
  });

  test('§18: its token is valid over HTTP at the same origin', async () => {
    const answer = await relay.bindDevice(socket, ann.device());
    const { token } = answer.result as { token: string };
    expect(codeOf(await relay.http().call('message.timeline.sync', {}, { token }))).toBe('ok');
  });

  test.each<[string, () => Promise<unknown>]>([
    ['another device', () => relay.bindDevice(socket, ann.device('laptop'))],
    ['another mode', () => relay.bindAccount(socket, ann)],
    [
      'another account',
      async () => relay.bindDevice(socket, (await relay.register('bob')).device()),
    ],
  ])('§10.6 rule 2: cannot be bound to %s', async (_, rebind) => {
    expect(await rebind()).toHaveProperty('error.code', forbidden);
    expect(await sync()).toHaveProperty('result');
  });

  test('§18: the refused attempt uses its nonce up', async () => {
    const nonce = await nonceOn();
    const proof = await relay.accountProof(ann, nonce);
    expect(await socket.call('auth.account.verify', proof)).toHaveProperty('error.code', forbidden);
    expect(codeOf(await relay.http().call('auth.account.verify', proof))).toBe('unauthorized');
  });

  test("a challenge of the account with another account's certificate is forbidden", async () => {
    const bob = await relay.register('bob');
    const proof = relay.deviceProof(bob.device(), await nonceOn());
    expect(await socket.call('auth.device.verify', proof)).toHaveProperty('error.code', forbidden);
  });
});

describe('02 §10.6: renewal', () => {
  beforeEach(async () => void (await relay.bindDevice(socket, ann.device())));

  test('makes a new session whose expiry the connection follows', async () => {
    relay.clock.advance(80_000);
    const renewed = await relay.bindDevice(socket, ann.device());
    expect(renewed).toHaveProperty('result.expires_at', relay.clock.now() + 86_400);
    relay.clock.advance(86_399);
    expect(await sync()).toHaveProperty('result');
    relay.clock.advance(1);
    expect(await sync()).toHaveProperty('error.code', unauthorized);
  });

  test('does not extend the old token', async () => {
    const { token } = await relay.logInDevice(ann);
    relay.clock.advance(86_399);
    await relay.bindDevice(socket, ann.device());
    relay.clock.advance(1);
    expect(codeOf(await relay.http().call('message.timeline.sync', {}, { token }))).toBe(
      'unauthorized',
    );
  });

  test('rule 7: a failed one changes nothing', async () => {
    const proof = relay.deviceProof(ann.device(), await nonceOn(), { timestamp: 1 });
    expect(await socket.call('auth.device.verify', proof)).toHaveProperty('error.code', -32006);
    expect(await sync()).toHaveProperty('result');
    relay.clock.advance(86_400);
    expect(await sync()).toHaveProperty('error.code', unauthorized);
  });

  test('rule 4: a session that ended during its renewal stays ended', async () => {
    const nonce = await nonceOn();
    relay.clock.advance(290);
    const proof = relay.deviceProof(ann.device(), nonce);
    let isFirst = true;
    // The session expires between its check and the end of the renewal.
    relay.faults.beforeStatement = (sql) => {
      if (!sql.includes('INSERT INTO auth_sessions') || !isFirst) return;
      isFirst = false;
      relay.clock.advance(86_400);
    };
    expect(await socket.call('auth.device.verify', proof)).toHaveProperty(
      'error.code',
      unauthorized,
    );
    delete relay.faults.beforeStatement;
    expect(await sync()).toHaveProperty('error.code', unauthorized);
  });

  test('works for an account session as well', async () => {
    const other = await relay.socket();
    await relay.bindAccount(other, ann);
    relay.clock.advance(3_599);
    expect(await relay.bindAccount(other, ann)).toHaveProperty('result.mode', 'account');
    relay.clock.advance(3_599);
    const own = await other.call('device.state.resolve', { account: ann.account });
    expect(own).toHaveProperty('result.account', ann.account);
  });
});

describe('02 §10.5: a dead binding', () => {
  beforeEach(async () => {
    await relay.bindDevice(socket, ann.device());
    relay.clock.advance(86_400);
  });

  test('refuses calls and renewal, and still reads what is public', async () => {
    expect(await sync()).toHaveProperty('error.code', unauthorized);
    expect(await relay.bindDevice(socket, ann.device())).toHaveProperty('error.code', unauthorized);
    expect(await socket.call('relay.info')).toHaveProperty('result');
    expect(socket.socket.readyState).toBe(socket.socket.OPEN);
  });

  test('the refused renewal uses its nonce up', async () => {
    const proof = relay.deviceProof(ann.device(), await nonceOn());
    await socket.call('auth.device.verify', proof);
    expect(codeOf(await relay.http().call('auth.device.verify', proof))).toBe('unauthorized');
  });

  test('a new connection works as before', async () => {
    const next = await relay.socket();
    await relay.bindDevice(next, ann.device());
    expect(await sync(next)).toHaveProperty('result');
  });
});
