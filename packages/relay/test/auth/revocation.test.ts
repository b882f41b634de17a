import type { Challenge } from '@posthouse/protocol';
import { describe, expect, test } from 'vitest';
import { onceCommitted } from '../support/faults.ts';
import { codeOf } from '../support/http.ts';
import { servedRelay } from '../support/served-relay.ts';
import type { WebSocketClient } from '../support/websocket.ts';

const door = servedRelay();
const ann = door.person('ann', ['phone', 'laptop']);

const sync = async (token: string) =>
  codeOf(await door.http().call('message.timeline.sync', {}, { token }));
const removeLaptop = async () => ann.publishState(await ann.state({ devices: ['phone'] }));

describe('02 §10.3: a removed device', () => {
  test('its tokens end at once, those of the others stay', async () => {
    const laptop = await door.logInDevice(ann, 'laptop');
    const phone = await door.logInDevice(ann, 'phone');
    expect(await sync(laptop.token)).toBe('ok');
    await removeLaptop();
    expect(await sync(laptop.token)).toBe('unauthorized');
    expect(await sync(phone.token)).toBe('ok');
  });

  test('its sessions leave the session cache too', async () => {
    const { sessions } = door.relay.context;
    const origin = new URL(door.relay.https[0] as string).origin;
    const { token } = await door.logInDevice(ann, 'laptop');
    expect(await sessions.find(token, origin)).toMatchObject({ mode: 'device' });
    expect(sessions.isCached(token)).toBe(true);
    await removeLaptop();
    expect(sessions.isCached(token)).toBe(false);
    expect(await sessions.find(token, origin)).toBeUndefined();
  });

  test('its tokens stay ended after a restart', async () => {
    const laptop = await door.logInDevice(ann, 'laptop');
    await removeLaptop();
    await door.restart();
    expect(await sync(laptop.token)).toBe('unauthorized');
  });

  test('its connection is dead and gets no notification, not even of its removal', async () => {
    const laptop = await door.socket();
    const phone = await door.socket();
    await door.bindDevice(laptop, ann.device('laptop'));
    await door.bindDevice(phone, ann.device('phone'));
    await removeLaptop();
    expect(await phone.notification()).toMatchObject({ method: 'device.state.changed' });
    expect(await laptop.notificationsSoFar()).toEqual([]);
    expect(await laptop.call('message.timeline.sync', {})).toHaveProperty('error.code', -32001);
    expect(await door.bindDevice(laptop, ann.device('laptop'))).toHaveProperty(
      'error.code',
      -32001,
    );
  });

  test('account sessions are not touched', async () => {
    const socket = await door.socket();
    await door.bindAccount(socket, ann);
    await removeLaptop();
    const own = await socket.call('device.state.resolve', { account: ann.account });
    expect(own).toHaveProperty('result');
    expect(await socket.notificationsSoFar()).toEqual([]);
  });

  test('a renewed certificate ends no session', async () => {
    const { token } = await door.logInDevice(ann, 'laptop');
    await ann.addDevice('laptop', { expiresAt: door.clock.now() + 5_000 });
    await ann.publishState();
    expect(await sync(token)).toBe('ok');
  });
});

describe('02 §10.2: a kept device whose new certificate ends earlier', () => {
  const shorten = async (seconds: number) => {
    await ann.addDevice('laptop', { expiresAt: door.clock.now() + seconds });
    await ann.publishState();
  };

  test('its tokens end with the certificate, those of the others do not', async () => {
    const laptop = await door.logInDevice(ann, 'laptop');
    const phone = await door.logInDevice(ann, 'phone');
    expect(await sync(laptop.token)).toBe('ok');
    await shorten(600);
    door.clock.advance(599);
    expect(await sync(laptop.token)).toBe('ok');
    door.clock.advance(1);
    expect(await sync(laptop.token)).toBe('unauthorized');
    expect(await sync(phone.token)).toBe('ok');
  });

  test('its connection ends then too: no call, no push', async () => {
    const laptop = await door.socket();
    const phone = await door.socket();
    await door.bindDevice(laptop, ann.device('laptop'));
    await door.bindDevice(phone, ann.device('phone'));
    await shorten(600);
    expect(await laptop.notification()).toMatchObject({ method: 'device.state.changed' });
    expect(await phone.notification()).toMatchObject({ method: 'device.state.changed' });
    door.clock.advance(599);
    expect(await laptop.call('message.timeline.sync', {})).toHaveProperty('result');
    door.clock.advance(1);
    await ann.publishState();
    expect(await phone.notification()).toMatchObject({ method: 'device.state.changed' });
    expect(await laptop.notificationsSoFar()).toEqual([]);
    expect(await laptop.call('relay.info')).toHaveProperty('result');
    expect(await laptop.call('message.timeline.sync', {})).toHaveProperty('error.code', -32001);
  });

  test('neither a restart nor a later, longer certificate extends the session again', async () => {
    const { token } = await door.logInDevice(ann, 'laptop');
    await shorten(600);
    await shorten(5_000);
    await door.restart();
    door.clock.advance(600);
    expect(await sync(token)).toBe('unauthorized');
  });

  test('an earlier session stays valid if the new certificate outlasts it', async () => {
    const { token, expires_at } = await door.logInDevice(ann, 'laptop');
    await shorten(expires_at + 1 - door.clock.now());
    door.clock.advance(expires_at - 1 - door.clock.now());
    expect(await sync(token)).toBe('ok');
    door.clock.advance(1);
    expect(await sync(token)).toBe('unauthorized');
  });

  test('a session shortened between its commit and its binding is bound with the shorter time', async () => {
    const socket = await door.socket();
    const { result } = await socket.call('auth.challenge', { account: ann.account });
    const proof = door.deviceProof(ann.device('laptop'), (result as Challenge).nonce);
    const { bus, storage } = door.relay.context;
    const { deviceId } = ann.device('laptop');
    const expiresAt = door.clock.now() + 600;
    onceCommitted(door, 'INSERT INTO auth_sessions', async () => {
      await storage.write('test', (tx) =>
        tx.run('UPDATE auth_sessions SET expires_at = ?', expiresAt),
      );
      bus.publish([{ kind: 'capped', account: ann.account, deviceId, expiresAt }]);
    });
    const bound = await socket.call('auth.device.verify', proof);
    expect(bound).toHaveProperty('result.expires_at', expiresAt);
    door.clock.advance(600);
    expect(await socket.call('message.timeline.sync', {})).toHaveProperty('error.code', -32001);
  });
});

describe('02 §10.6 rule 7: authentication that reveals an invalid device', () => {
  test('ends the sessions it still has', async () => {
    const socket = await door.socket();
    await door.bindDevice(socket, ann.device('laptop'));
    const { token } = await door.logInDevice(ann, 'laptop');
    // The device leaves storage without a notice, as if another process had removed it.
    await door.relay.context.storage.write('test', (tx) =>
      tx.run('DELETE FROM devices WHERE device_id = ?', ann.device('laptop').deviceId),
    );
    expect(await door.bindDevice(socket, ann.device('laptop'))).toHaveProperty(
      'error.code',
      -32005,
    );
    expect(await socket.call('relay.info')).toHaveProperty('result');
    expect(await socket.call('message.timeline.sync', {})).toHaveProperty('error.code', -32001);
    expect(await sync(token)).toBe('unauthorized');
    await door.restart();
    expect(await sync(token)).toBe('unauthorized');
  });
});

describe('removal and authentication at the same time', () => {
  /** Sends the removal together with the authentication of the removed device. */
  async function raceOn(socket: WebSocketClient) {
    const { result } = await socket.call('auth.challenge', { account: ann.account });
    const proof = door.deviceProof(ann.device('laptop'), (result as Challenge).nonce);
    const state = await ann.state({ devices: ['phone'] });
    const { token } = await door.logInAccount(ann);
    const publish = door.http().call('device.state.publish', state, { token });
    const verify = socket.call('auth.device.verify', proof);
    return Promise.all([verify, publish]);
  }

  test('in either order, the removed device is not bound', async () => {
    for (let round = 0; round < 10; round += 1) {
      const socket = await door.socket();
      const [, published] = await raceOn(socket);
      expect(codeOf(published)).toBe('ok');
      const after = await socket.call('message.timeline.sync', {});
      expect(after).toHaveProperty('error.code', -32001);
      await ann.publishState();
    }
  });

  test('a session revoked between its commit and its binding is refused', async () => {
    const socket = await door.socket();
    const { result } = await socket.call('auth.challenge', { account: ann.account });
    const laptop = ann.device('laptop');
    const { bus, storage } = door.relay.context;
    const { account } = ann;
    onceCommitted(door, 'INSERT INTO auth_sessions', async () => {
      await storage.write('test', (tx) =>
        tx.run('DELETE FROM auth_sessions WHERE account = ?', account),
      );
      bus.publish([{ kind: 'revoked', account, deviceIds: [laptop.deviceId] }]);
    });
    const proof = door.deviceProof(laptop, (result as Challenge).nonce);
    expect(await socket.call('auth.device.verify', proof)).toHaveProperty('error.code', -32005);
    expect(await socket.call('message.timeline.sync', {})).toHaveProperty('error.code', -32001);
  });
});
