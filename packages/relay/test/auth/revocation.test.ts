import type { Challenge } from '@posthouse/protocol';
import { describe, expect, test } from 'vitest';
import { onceCommitted } from '../support/faults.ts';
import { codeOf } from '../support/http.ts';
import { servedRelay } from '../support/served-relay.ts';
import type { WebSocketClient } from '../support/websocket.ts';

const relay = servedRelay();
const ann = relay.person('ann', ['phone', 'laptop']);

const sync = async (token: string) =>
  codeOf(await relay.http().call('message.timeline.sync', {}, { token }));
const removeLaptop = async () => ann.publishState(await ann.state({ devices: ['phone'] }));

describe('02 §10.3: a removed device', () => {
  test('its tokens end at once, those of the others stay', async () => {
    const laptop = await relay.logInDevice(ann, 'laptop');
    const phone = await relay.logInDevice(ann, 'phone');
    expect(await sync(laptop.token)).toBe('ok');
    await removeLaptop();
    expect(await sync(laptop.token)).toBe('unauthorized');
    expect(await sync(phone.token)).toBe('ok');
  });

  test('its sessions leave the session cache too', async () => {
    const { sessions } = relay.server.context;
    const origin = new URL(relay.server.https[0] as string).origin;
    const { token } = await relay.logInDevice(ann, 'laptop');
    expect(await sessions.find(token, origin)).toMatchObject({ mode: 'device' });
    expect(sessions.isKnown(token)).toBe(true);
    await removeLaptop();
    expect(sessions.isKnown(token)).toBe(false);
    expect(await sessions.find(token, origin)).toBeUndefined();
  });

  test('its tokens stay ended after a restart', async () => {
    const laptop = await relay.logInDevice(ann, 'laptop');
    await removeLaptop();
    await relay.restart();
    expect(await sync(laptop.token)).toBe('unauthorized');
  });

  test('its connection is dead and gets no notification, not even of its removal', async () => {
    const laptop = await relay.socket();
    const phone = await relay.socket();
    await relay.bindDevice(laptop, ann.device('laptop'));
    await relay.bindDevice(phone, ann.device('phone'));
    await removeLaptop();
    expect(await phone.notification()).toMatchObject({ method: 'device.state.changed' });
    expect(await laptop.notificationsSoFar()).toEqual([]);
    expect(await laptop.call('message.timeline.sync', {})).toHaveProperty('error.code', -32001);
    expect(await relay.bindDevice(laptop, ann.device('laptop'))).toHaveProperty(
      'error.code',
      -32001,
    );
  });

  test('account sessions are not touched', async () => {
    const socket = await relay.socket();
    await relay.bindAccount(socket, ann);
    await removeLaptop();
    const own = await socket.call('device.state.resolve', { account: ann.account });
    expect(own).toHaveProperty('result');
    expect(await socket.notificationsSoFar()).toEqual([]);
  });

  test('a renewed certificate ends no session', async () => {
    const { token } = await relay.logInDevice(ann, 'laptop');
    await ann.addDevice('laptop', { expiresAt: relay.clock.now() + 5_000 });
    await ann.publishState();
    expect(await sync(token)).toBe('ok');
  });
});

describe('02 §10.2: a kept device whose new certificate ends earlier', () => {
  const shorten = async (seconds: number) => {
    await ann.addDevice('laptop', { expiresAt: relay.clock.now() + seconds });
    await ann.publishState();
  };

  test('its tokens end with the certificate, those of the others do not', async () => {
    const laptop = await relay.logInDevice(ann, 'laptop');
    const phone = await relay.logInDevice(ann, 'phone');
    expect(await sync(laptop.token)).toBe('ok');
    await shorten(600);
    relay.clock.advance(599);
    expect(await sync(laptop.token)).toBe('ok');
    relay.clock.advance(1);
    expect(await sync(laptop.token)).toBe('unauthorized');
    expect(await sync(phone.token)).toBe('ok');
  });

  test('its connection ends then too: no call, no push', async () => {
    const laptop = await relay.socket();
    const phone = await relay.socket();
    await relay.bindDevice(laptop, ann.device('laptop'));
    await relay.bindDevice(phone, ann.device('phone'));
    await shorten(600);
    expect(await laptop.notification()).toMatchObject({ method: 'device.state.changed' });
    expect(await phone.notification()).toMatchObject({ method: 'device.state.changed' });
    relay.clock.advance(599);
    expect(await laptop.call('message.timeline.sync', {})).toHaveProperty('result');
    relay.clock.advance(1);
    await ann.publishState();
    expect(await phone.notification()).toMatchObject({ method: 'device.state.changed' });
    expect(await laptop.notificationsSoFar()).toEqual([]);
    expect(await laptop.call('relay.info')).toHaveProperty('result');
    expect(await laptop.call('message.timeline.sync', {})).toHaveProperty('error.code', -32001);
  });

  test('neither a restart nor a later, longer certificate extends the session again', async () => {
    const { token } = await relay.logInDevice(ann, 'laptop');
    await shorten(600);
    await shorten(5_000);
    await relay.restart();
    relay.clock.advance(600);
    expect(await sync(token)).toBe('unauthorized');
  });

  test('an earlier session stays valid if the new certificate outlasts it', async () => {
    const { token, expires_at } = await relay.logInDevice(ann, 'laptop');
    await shorten(expires_at + 1 - relay.clock.now());
    relay.clock.advance(expires_at - 1 - relay.clock.now());
    expect(await sync(token)).toBe('ok');
    relay.clock.advance(1);
    expect(await sync(token)).toBe('unauthorized');
  });

  test('a session shortened between its commit and its binding is bound with the shorter time', async () => {
    const socket = await relay.socket();
    const { result } = await socket.call('auth.challenge', { account: ann.account });
    const proof = relay.deviceProof(ann.device('laptop'), (result as Challenge).nonce);
    const { bus, storage } = relay.server.context;
    const { deviceId } = ann.device('laptop');
    const expiresAt = relay.clock.now() + 600;
    onceCommitted(relay, 'INSERT INTO auth_sessions', async () => {
      await storage.write('test', (tx) =>
        tx.run('UPDATE auth_sessions SET expires_at = ?', expiresAt),
      );
      bus.publish([{ kind: 'capped', account: ann.account, deviceId, expiresAt }]);
    });
    const bound = await socket.call('auth.device.verify', proof);
    expect(bound).toHaveProperty('result.expires_at', expiresAt);
    relay.clock.advance(600);
    expect(await socket.call('message.timeline.sync', {})).toHaveProperty('error.code', -32001);
  });
});

describe('02 §10.6 rule 7: authentication that reveals an invalid device', () => {
  test('ends the sessions it still has', async () => {
    const socket = await relay.socket();
    await relay.bindDevice(socket, ann.device('laptop'));
    const { token } = await relay.logInDevice(ann, 'laptop');
    // The device leaves storage without a notice, as if another process had removed it.
    await relay.server.context.storage.write('test', (tx) =>
      tx.run('DELETE FROM devices WHERE device_id = ?', ann.device('laptop').deviceId),
    );
    expect(await relay.bindDevice(socket, ann.device('laptop'))).toHaveProperty(
      'error.code',
      -32005,
    );
    expect(await socket.call('relay.info')).toHaveProperty('result');
    expect(await socket.call('message.timeline.sync', {})).toHaveProperty('error.code', -32001);
    expect(await sync(token)).toBe('unauthorized');
    await relay.restart();
    expect(await sync(token)).toBe('unauthorized');
  });
});

describe('removal and authentication at the same time', () => {
  /** Sends the removal together with the authentication of the removed device. */
  async function raceOn(socket: WebSocketClient) {
    const { result } = await socket.call('auth.challenge', { account: ann.account });
    const proof = relay.deviceProof(ann.device('laptop'), (result as Challenge).nonce);
    const state = await ann.state({ devices: ['phone'] });
    const { token } = await relay.logInAccount(ann);
    const publish = relay.http().call('device.state.publish', state, { token });
    const verify = socket.call('auth.device.verify', proof);
    return Promise.all([verify, publish]);
  }

  /** Begins the next two writes of the account at once; says when each one came. */
  function commitTogether() {
    const { storage } = relay.server.context;
    const { write } = storage;
    const came = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
    const begin: (() => void)[] = [];
    storage.write = async (aggregates, work) => {
      if (![aggregates].flat().includes(`account:${ann.account}`))
        return (await write.call(storage, aggregates, work)) as never;
      const { promise, resolve, reject } = Promise.withResolvers<never>();
      begin.push(
        () => void write.call(storage, aggregates, work).then(resolve as () => void, reject),
      );
      came[begin.length - 1]?.resolve();
      if (begin.length === 2) {
        storage.write = write;
        for (const one of begin) one();
      }
      return await promise;
    };
    return { opened: came[0].promise, removed: came[1].promise };
  }

  test('in either order, the removed device is not bound', async () => {
    for (let round = 0; round < 10; round += 1) {
      const socket = await relay.socket();
      const [, published] = await raceOn(socket);
      expect(codeOf(published)).toBe('ok');
      const after = await socket.call('message.timeline.sync', {});
      expect(after).toHaveProperty('error.code', -32001);
      await ann.publishState();
    }
  });

  test('a session revoked by the write after it, in one transaction, is not usable', async () => {
    const socket = await relay.socket();
    const { result } = await socket.call('auth.challenge', { account: ann.account });
    const laptop = ann.device('laptop');
    const proof = relay.deviceProof(laptop, (result as Challenge).nonce);
    const state = await ann.state({ devices: ['phone'] });
    const { token } = await relay.logInAccount(ann);
    const { opened, removed } = commitTogether();
    const verify = socket.call('auth.device.verify', proof);
    await opened;
    const publish = relay.http().call('device.state.publish', state, { token });
    await removed;
    expect(codeOf(await publish)).toBe('ok');
    await verify;
    // Refused for the connection: this method would see by itself that the device was removed.
    const after = await socket.call('message.timeline.sync', {});
    expect(after).toMatchObject({ error: { code: -32001, message: 'no valid session' } });
  });

  test('a session revoked between its commit and its binding is refused', async () => {
    const socket = await relay.socket();
    const { result } = await socket.call('auth.challenge', { account: ann.account });
    const laptop = ann.device('laptop');
    const { bus, storage } = relay.server.context;
    const { account } = ann;
    onceCommitted(relay, 'INSERT INTO auth_sessions', async () => {
      await storage.write('test', (tx) =>
        tx.run('DELETE FROM auth_sessions WHERE account = ?', account),
      );
      bus.publish([{ kind: 'revoked', account, deviceIds: [laptop.deviceId] }]);
    });
    const proof = relay.deviceProof(laptop, (result as Challenge).nonce);
    expect(await socket.call('auth.device.verify', proof)).toHaveProperty('error.code', -32005);
    expect(await socket.call('message.timeline.sync', {})).toHaveProperty('error.code', -32001);
  });
});
