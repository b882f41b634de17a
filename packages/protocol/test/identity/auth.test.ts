import { describe, expect, test } from 'vitest';
import {
  accountAuthInput,
  checkChallenge,
  checkRelayInfo,
  checkSessionCredentials,
  deviceAuthInput,
  type RelayDescriptor,
  type RelayInfo,
  relayOrigin,
} from '../../src/index.ts';
import {
  certificate,
  codeOf,
  context,
  descriptor,
  deviceId,
  network,
  relayId,
  without,
} from './appendix.ts';

const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

describe('02 §8: relay origin', () => {
  test.each([
    ['https://RELAY.example:443/svc/v1', 'https://relay.example'],
    ['wss://relay.example/svc/v1', 'https://relay.example'],
    ['WSS://relay.example/svc/v1', 'https://relay.example'],
    ['https://relay.example:8443/svc/v1', 'https://relay.example:8443'],
    ['wss://relay.example.:443/svc/v1', 'https://relay.example.'],
    ['wss://[2001:DB8:0:0:0:0:0:1]:444/svc/v1', 'https://[2001:db8::1]:444'],
    ['https://[2001:db8:0:0:1:0:0:1]/svc/v1', 'https://[2001:db8::1:0:0:1]'],
    ['https://[::ffff:192.0.2.1]/svc/v1', 'https://[::ffff:c000:201]'],
    ['https://relay.example:08443/svc/v1', 'https://relay.example:8443'],
    ['https://relay.example:0443/svc/v1', 'https://relay.example'],
    ['https://faß.example/svc/v1', 'https://xn--fa-hia.example'],
    ['https://user@relay.example/a/?b#c', 'https://relay.example'],
  ])('%j has the origin %j', (endpoint, origin) => {
    expect(relayOrigin(endpoint)).toBe(origin);
  });

  test.each(['http://relay.example', 'ws://relay.example', 'relay.example', ''])(
    '%j has none',
    (endpoint) => {
      expect(() => relayOrigin(endpoint)).toThrow(TypeError);
    },
  );
});

describe('02 §9: signing inputs of authentication', () => {
  const facts = {
    relay_id: relayId,
    origin: 'https://relay.example',
    account: certificate.account,
    nonce: 'q83v',
  };

  test('9.3: a device signs relay, origin, account, device, nonce and time', () => {
    const input = deviceAuthInput(network, {
      ...facts,
      device_id: deviceId,
      timestamp: 1730000005,
    });
    expect(textOf(input)).toBe(
      `{"$context":"${context}","$type":"svc.relay.auth","account":"${certificate.account}","device_id":"${deviceId}","nonce":"q83v","origin":"https://relay.example","relay_id":"${relayId}","timestamp":1730000005}`,
    );
  });

  test('9.4: an account signs relay, origin, account, key and nonce', () => {
    const { account_public_key } = certificate;
    const input = accountAuthInput(network, { ...facts, account_public_key });
    expect(textOf(input)).toBe(
      `{"$context":"${context}","$type":"svc.relay.account_auth","account":"${certificate.account}","account_public_key":"${account_public_key}","nonce":"q83v","origin":"https://relay.example","relay_id":"${relayId}"}`,
    );
  });

  test('9.3: members a request brought along do not enter the input', () => {
    const own = { ...facts, device_id: deviceId, timestamp: 1 };
    const extended = { ...own, $type: 'x', device_signature: 'y', zz: 1 };
    expect(deviceAuthInput(network, extended)).toEqual(deviceAuthInput(network, own));
    const byAccount = { ...facts, account_public_key: 'x' };
    expect(accountAuthInput(network, { ...byAccount, ...{ timestamp: 1 } })).toEqual(
      accountAuthInput(network, byAccount),
    );
  });
});

describe('02 §9.2: Challenge', () => {
  const challenge = { nonce: 'q83v', created_at: 1730000000, expires_at: 1730000300 };
  const check = (value: unknown) => codeOf(() => checkChallenge(value));

  test('it expires after it was made', () => {
    expect(check(challenge)).toBeUndefined();
    expect(check({ ...challenge, expires_at: 1730000001 })).toBeUndefined();
    expect(check({ ...challenge, expires_at: 1730000000 })).toBe('bad_request');
  });

  test.each([
    ['', 'bad_request'],
    ['a', undefined],
    ['!~', undefined],
    ['x'.repeat(256), undefined],
    ['x'.repeat(257), 'bad_request'],
    ['a b', 'bad_request'],
    ['a\u007f', 'bad_request'],
    ['é', 'bad_request'],
    ['a\n', 'bad_request'],
  ])('nonce %j: %s', (nonce, code) => {
    expect(check({ ...challenge, nonce })).toBe(code);
    const credentials = { token: nonce, mode: 'device', expires_at: 1 };
    expect(codeOf(() => checkSessionCredentials(credentials, 'device'))).toBe(code);
  });
});

describe('02 §10.1: SessionCredentials', () => {
  const credentials = { token: 'abc', mode: 'device', expires_at: 1 };

  test('the mode must be that of the method called', () => {
    expect(codeOf(() => checkSessionCredentials(credentials, 'device'))).toBeUndefined();
    expect(codeOf(() => checkSessionCredentials(credentials, 'account'))).toBe('bad_request');
    const other = { ...credentials, mode: 'admin' };
    expect(codeOf(() => checkSessionCredentials(other, 'device'))).toBe('bad_request');
  });

  test.each(Object.keys(credentials))('without %s they are refused', (name) => {
    expect(codeOf(() => checkSessionCredentials(without(credentials, name), 'device'))).toBe(
      'bad_request',
    );
  });
});

describe('01 §2.1 J9: answers of a relay', () => {
  test('null in an unknown member is refused', () => {
    const more = { x: [{ y: null }] };
    const challenge = { nonce: 'a', created_at: 1, expires_at: 2 };
    expect(codeOf(() => checkChallenge({ ...challenge, ...more }))).toBe('bad_request');
    const session = { token: 'a', mode: 'device', expires_at: 1, ...more };
    expect(codeOf(() => checkSessionCredentials(session, 'device'))).toBe('bad_request');
    const limits = { message_retention: 1, ...more };
    const info = { relay_id: relayId, name: 'Relay', server_time: 1, limits };
    expect(codeOf(() => checkRelayInfo(info))).toBe('bad_request');
  });
});

describe('02 §11.2: RelayInfo', () => {
  const limits = {
    message_retention: 1,
    channel_timeline_retention: 1,
    max_channel_subscriptions: 0,
    group_message_retention: 1,
    max_group_members: 1,
    max_group_subscriptions: 0,
    max_group_invite_ttl: 1,
  };
  const info: RelayInfo = { relay_id: relayId, name: 'Relay', server_time: 1, limits };
  const check = (value: unknown, by?: RelayDescriptor) => codeOf(() => checkRelayInfo(value, by));

  test('it is complete, and of the relay of the descriptor', () => {
    expect(check(info)).toBeUndefined();
    expect(check(info, descriptor)).toBeUndefined();
    expect(check({ ...info, relay_id: `0x${'00'.repeat(20)}` }, descriptor)).toBe('bad_request');
  });

  test.each([
    ['', 'bad_request'],
    ['x', undefined],
    ['x'.repeat(256), undefined],
    ['x'.repeat(257), 'bad_request'],
    ['é'.repeat(128), undefined],
    [`${'é'.repeat(128)}x`, 'bad_request'],
    [' \u3000', 'bad_request'],
    [' x ', undefined],
    ['\ufeff', undefined],
  ])('name %j: %s', (name, code) => {
    expect(check({ ...info, name })).toBe(code);
  });

  test.each(['relay_id', 'name', 'server_time', 'limits'])('without %s it is refused', (name) => {
    expect(check(without(info, name))).toBe('bad_request');
  });

  test.each([
    ['message_retention', 0],
    ['channel_timeline_retention', 0],
    ['group_message_retention', 0],
    ['max_group_members', 0],
    ['max_group_invite_ttl', 0],
    ['max_channel_subscriptions', -1],
    ['max_group_subscriptions', -1],
    ['max_group_subscriptions', null],
    ['max_group_bans', 0],
    ['clock_tolerance', -1],
    ['future_tolerance', 0.5],
    ['max_delivery_age', null],
    ['message_retention', '1'],
  ])('limit %s is refused as %j', (name, value) => {
    expect(check({ ...info, limits: { ...limits, [name]: value } })).toBe('bad_request');
  });

  test('a relay states the limits of the modules it declares, caps only with WSS', () => {
    const without1 = (name: string) => ({ ...info, limits: without(limits, name) });
    const plain = { ...descriptor, endpoints: descriptor.endpoints.filter((e) => !/^wss/.test(e)) };
    for (const name of Object.keys(limits).slice(1)) {
      expect(check(without1(name), descriptor)).toBe('bad_request');
      expect(check(without1(name), { ...plain, capabilities: [] })).toBeUndefined();
      const cap = name.endsWith('_subscriptions');
      expect(check(without1(name), plain)).toBe(cap ? undefined : 'bad_request');
    }
    const onlyGroups = { ...descriptor, capabilities: ['group.host.v1'] };
    expect(check(without1('channel_timeline_retention'), onlyGroups)).toBeUndefined();
    expect(check(without1('message_retention'), { ...plain, capabilities: [] })).toBe(
      'bad_request',
    );
  });
});
