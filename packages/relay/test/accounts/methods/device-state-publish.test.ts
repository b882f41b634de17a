import {
  accountSigner,
  cosignRoute,
  deriveRelayId,
  encodeBase64url,
  signDeviceState,
} from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import { beforeEach, describe, expect, test } from 'vitest';
import { observeRoute } from '../../../src/accounts/index.ts';
import { defaultLimits } from '../../../src/limits.ts';
import { Person } from '../../fixtures/person.ts';
import { inProcessRelay, network } from '../../support/in-process-relay.ts';

const method = 'device.state.publish';
const relay = inProcessRelay();
let ann: Person;

beforeEach(async () => {
  ann = new Person(relay, 'ann');
  await ann.addDevice('phone');
});

const publish = (params: unknown, session = ann.accountSession()) =>
  relay.call(method, params, { session });
const codeOf = (params: unknown, session = ann.accountSession()) =>
  relay.codeOf(method, params, { session });
const flipped = (signature: string) =>
  `${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`;

describe('03 §4.2: pre-storage at a relay that is not the home relay', () => {
  test('a state is staged until the window has passed, without any notice', async () => {
    const staged_until = relay.clock.now() + 900;
    expect(await publish(await ann.state())).toEqual({ status: 'staged', staged_until });
    expect(relay.takeNotices()).toEqual([]);
  });

  test('an identical repeat answers the original deadline', async () => {
    const state = await ann.state();
    const first = await publish(state);
    relay.clock.advance(100);
    expect(await publish(state)).toEqual(first);
  });

  test('a higher revision replaces it with a deadline counted from its own acceptance', async () => {
    await publish(await ann.state());
    relay.clock.advance(100);
    const staged_until = relay.clock.now() + 900;
    expect(await publish(await ann.state())).toEqual({ status: 'staged', staged_until });
  });

  test('§4.3: higher revisions keep it for 24 hours in all, and no deadline moves back', async () => {
    const until = async () =>
      ((await publish(await ann.state())) as { staged_until: number }).staged_until;
    const end = relay.clock.now() + relay.context.limits.stagingWindow;
    for (let last = 0; relay.clock.now() < end - 900; relay.clock.advance(890)) {
      const next = await until();
      expect(next).toBe(relay.clock.now() + 900);
      expect(next).toBeGreaterThan(last);
      last = next;
    }
    expect(await until()).toBe(end);
    relay.clock.advance(10);
    expect(await until()).toBe(end);
    relay.clock.advance(end - relay.clock.now());
    expect(await until()).toBe(end + 900);
  });

  test('§4.3: the state of an account that moves here is kept for 24 hours', async () => {
    const old = accountSigner(network, new Uint8Array(32).fill(0x55));
    const draft = await ann.route({ relay_id: deriveRelayId(network, old.publicKey) });
    await publish(await ann.state());
    await observeRoute(relay.context, await cosignRoute(network, old, draft));
    relay.clock.advance(100);
    const limit = relay.context.limits.stagingWindow;
    const first = await publish(await ann.state());
    expect(first).toEqual({ status: 'staged', staged_until: relay.clock.now() - 100 + limit });
    relay.clock.advance(limit);
    const second = await publish(await ann.state());
    expect(second).toEqual({ status: 'staged', staged_until: relay.clock.now() + limit });
    // An operator who shortens the window shortens no deadline that was answered.
    await relay.restart({ stagingWindow: 1_000 });
    expect(await publish(await ann.state())).toEqual(second);
  });

  test('a lower revision is stale, another content of the same one a conflict', async () => {
    const state = await ann.state({ revision: 10 });
    await publish(state);
    const before = await relay.dump();
    expect(await codeOf(await ann.state({ revision: 9 }))).toBe('stale_state');
    expect(await codeOf(await ann.state({ revision: 10, devices: [] }))).toBe('state_conflict');
    expect(await relay.dump()).toEqual(before);
  });

  test('after the deadline the staged state is gone, even before the job has run', async () => {
    const { stagingWindowOfUnknown: window } = relay.context.limits;
    const state = await ann.state({ revision: 10 });
    await publish(state);
    relay.clock.advance(window - 1);
    expect(await codeOf(await ann.state({ revision: 9 }))).toBe('stale_state');
    relay.clock.advance(1);
    const staged_until = relay.clock.now() + window;
    expect(await publish(await ann.state({ revision: 9 }))).toEqual({
      status: 'staged',
      staged_until,
    });
  });

  test('the job removes what is past its deadline and nothing else', async () => {
    await publish(await ann.state());
    relay.clock.advance(10);
    const ben = new Person(relay, 'ben');
    await ben.addDevice('phone');
    await ben.publishState();
    relay.clock.advance(relay.context.limits.stagingWindowOfUnknown - 10);
    const next = await relay.runJob('accounts.staged');
    const { staged_states: left } = await relay.dump();
    expect(left).toHaveLength(1);
    expect(next).toBe(relay.clock.now() + 10);
  });

  test('if the store is full, a new account is refused and a stored one is still served', async () => {
    await relay.restart({ stagedStates: 1 });
    ann = new Person(relay, 'ann');
    await ann.publishState(await ann.state());
    const ben = new Person(relay, 'ben');
    const { stagingWindowOfUnknown: window } = relay.context.limits;
    relay.clock.advance(100);
    const refused = relay.call(method, await ben.state(), { session: ben.accountSession() });
    // 02 §5: the wait is named if it is known.
    await expect(refused).rejects.toMatchObject({
      code: 'rate_limited',
      data: { retry_after: window - 100 },
    });
    expect(await codeOf(await ann.state())).toBe('ok');
    relay.clock.advance(window);
    expect(await codeOf(await ben.state(), ben.accountSession())).toBe('ok');
  });

  test('§4.3: 20 states of one address are kept, also over a restart; others have room', async () => {
    await relay.restart({ stagedStatesPerAddress: defaultLimits.stagedStatesPerAddress });
    const first = '198.51.100.1';
    const stage = async (name: string, address: string, revision = 1) => {
      const person = new Person(relay, name);
      const state = await person.state({ revision });
      return await relay.call(method, state, { session: person.accountSession(), address });
    };
    for (let count = 0; count < 20; count += 1) {
      expect(await stage(`person ${count}`, first)).toHaveProperty('status', 'staged');
      relay.clock.advance(10);
    }
    await relay.restart();
    const kept = await relay.rows('staged_states');
    await expect(stage('one more', first)).rejects.toMatchObject({
      code: 'rate_limited',
      data: { retry_after: 900 - 200 },
    });
    expect(await relay.rows('staged_states')).toEqual(kept);
    expect(await stage('neighbour', '198.51.100.2')).toHaveProperty('status', 'staged');
    // A higher revision needs no other room.
    expect(await stage('person 0', first, 2)).toHaveProperty('status', 'staged');
    relay.clock.advance(700);
    await expect(stage('one more', first)).rejects.toMatchObject({ data: { retry_after: 10 } });
    relay.clock.advance(10);
    expect(await stage('one more', first)).toHaveProperty('status', 'staged');
    // The one that has ended, and is not deleted yet, gives no further room.
    await expect(stage('a third', first)).rejects.toMatchObject({ data: { retry_after: 10 } });
    await relay.runJob('accounts.staged');
    const addresses = (await relay.rows('staged_states')).map(({ address }) => address);
    expect(addresses.filter((address) => address === first)).toHaveLength(20);
  });

  test('a staged state answers neither a public query nor anything else about the account', async () => {
    await publish(await ann.state());
    const ben = await Person.register(relay, 'ben');
    const options = { session: ben.session() };
    const code = await relay.codeOf('device.state.resolve', { account: ann.account }, options);
    expect(code).toBe('route_not_found');
    expect(
      await relay.codeOf(
        'device.state.resolve',
        { account: ann.account },
        { session: ann.accountSession() },
      ),
    ).toBe('target_not_local');
  });
});

describe('03 §4.1: at the home relay', () => {
  beforeEach(async () => {
    await ann.moveIn();
    relay.takeNotices();
  });

  test('a higher revision is accepted and the devices are notified', async () => {
    const state = await ann.state();
    expect(await publish(state)).toEqual({ status: 'accepted' });
    const deviceIds = ann.deviceIds();
    expect(relay.takeNotices()).toEqual([
      { kind: 'device-state', account: ann.account, revision: state.revision, deviceIds },
    ]);
  });

  test('a device session may publish too', async () => {
    const params = await ann.state();
    expect(await relay.call(method, params, { session: ann.session() })).toEqual({
      status: 'accepted',
    });
  });

  test('an identical repeat is accepted again, without any notice', async () => {
    const state = await ann.state();
    await publish(state);
    relay.takeNotices();
    const before = await relay.dump();
    expect(await publish(state)).toEqual({ status: 'accepted' });
    expect(relay.takeNotices()).toEqual([]);
    expect(await relay.dump()).toEqual(before);
  });

  test('the state that was staged answers accepted once its route is in force', async () => {
    const ben = new Person(relay, 'ben');
    const state = await ben.state();
    await ben.publishState(state);
    await ben.publishRoute();
    const answer = await relay.call(method, state, { session: ben.accountSession() });
    expect(answer).toEqual({ status: 'accepted' });
  });

  test('a lower revision is stale, another content a conflict; nothing changes', async () => {
    await publish(await ann.state({ revision: 5_000 }));
    const before = await relay.dump();
    expect(await codeOf(await ann.state({ revision: 4_999 }))).toBe('stale_state');
    expect(await codeOf(await ann.state({ revision: 5_000, devices: [] }))).toBe('state_conflict');
    expect(await relay.dump()).toEqual(before);
  });

  test('revision 2^53-1 is accepted and is the last one', async () => {
    const last = Number.MAX_SAFE_INTEGER;
    expect(await publish(await ann.state({ revision: last }))).toEqual({ status: 'accepted' });
    expect(await codeOf(await ann.state({ revision: last, devices: [] }))).toBe('state_conflict');
    expect(await codeOf({ ...(await ann.state()), revision: last + 1 })).toBe('bad_request');
  });

  test('two different states of one revision at once: one is accepted, one conflicts', async () => {
    const revision = ann.nextRevision();
    const rivals = [await ann.state({ revision }), await ann.state({ revision, devices: [] })];
    const codes = await Promise.all(rivals.map((state) => codeOf(state)));
    expect(codes.sort()).toEqual(['ok', 'state_conflict']);
  });

  test('the same state twice at once is accepted twice and notified once', async () => {
    const state = await ann.state();
    const answers = await Promise.all([publish(state), publish(state)]);
    expect(answers).toEqual([{ status: 'accepted' }, { status: 'accepted' }]);
    expect(relay.takeNotices()).toHaveLength(1);
  });
});

describe('02 §10.3, 03 §4.1: sessions of devices that a new state does not permit', () => {
  const sessionsOf = async () =>
    ((await relay.rows('auth_sessions')) as { device_id: string | null }[])
      .map(({ device_id: deviceId }) => deviceId)
      .sort();
  /** Stores a session as authentication does. */
  const open = (token: string, deviceId: string | null) =>
    relay.context.storage.write('test', (tx) =>
      tx.run(
        `INSERT INTO auth_sessions (token_hash, account, mode, device_id, origin, expires_at)
          VALUES (?, ?, ?, ?, 'https://relay.example', 9999999999)`,
        token,
        ann.account,
        deviceId === null ? 'account' : 'device',
        deviceId,
      ),
    );

  beforeEach(async () => {
    await ann.addDevice('laptop');
    await ann.moveIn();
    relay.takeNotices();
    await open('1', ann.device('phone').deviceId);
    await open('2', ann.device('laptop').deviceId);
    await open('3', null);
  });

  test('a removed device loses its sessions in the same commit, and its revocation comes first', async () => {
    const state = await ann.state({ devices: ['phone'] });
    await publish(state);
    expect(await sessionsOf()).toEqual([ann.device('phone').deviceId, null].sort());
    const deviceIds = ann.deviceIds('phone');
    expect(relay.takeNotices()).toEqual([
      { kind: 'revoked', account: ann.account, deviceIds: ann.deviceIds('laptop') },
      { kind: 'device-state', account: ann.account, revision: state.revision, deviceIds },
    ]);
  });

  test('a renewal with the same keys ends no session', async () => {
    await ann.addDevice('laptop', { expiresAt: relay.clock.now() + 1_000 });
    await publish(await ann.state());
    expect(await sessionsOf()).toHaveLength(3);
  });

  test.each([
    ['expired', -100, 0],
    ['not yet in effect', 1, 100],
  ])('a device whose newest certificate is %s loses its sessions', async (_, from, until) => {
    const now = relay.clock.now();
    await ann.addDevice('laptop', { notBefore: now + from, expiresAt: now + until });
    await publish(await ann.state());
    expect(await sessionsOf()).not.toContain(ann.device('laptop').deviceId);
  });

  test('a refused state ends no session', async () => {
    const state = await ann.state({ revision: 1, devices: [] });
    expect(await codeOf(state)).toBe('stale_state');
    expect(await sessionsOf()).toHaveLength(3);
    expect(relay.takeNotices()).toEqual([]);
  });

  test('a state without devices ends all device sessions, and an account session can still be opened', async () => {
    await publish(await ann.state({ devices: [] }));
    expect(await sessionsOf()).toEqual([null]);
    expect(await codeOf(await ann.state())).toBe('ok');
  });
});

describe('03 §4.3: errors', () => {
  test('no session', async () => {
    expect(await relay.codeOf(method, await ann.state())).toBe('unauthorized');
  });

  test('a state of another account than the calling one', async () => {
    const ben = new Person(relay, 'ben');
    expect(await codeOf(await ben.state())).toBe('forbidden');
  });

  test('bad structure, a key of another account, a foreign or repeated certificate', async () => {
    const state = await ann.state();
    const ben = new Person(relay, 'ben');
    await ben.addDevice('phone');
    const { account_public_key } = await ben.state();
    const [certificate] = state.certificates;
    const [foreign] = (await ben.state()).certificates;
    for (const wrong of [
      {},
      { ...state, revision: '1' },
      { ...state, revision: -1 },
      { ...state, $type: 'svc.account.devices' },
      { ...state, $context: network.context },
      { ...state, extra: null },
      { ...state, account_public_key },
      { ...state, certificates: [foreign] },
      { ...state, certificates: [certificate, certificate] },
      { ...state, certificates: Array.from({ length: 9 }, () => certificate) },
    ]) {
      expect(await codeOf(wrong), canonicalJson(wrong as never).slice(0, 80)).toBe('bad_request');
    }
  });

  test('a signature of the account or of a certificate that does not verify', async () => {
    const state = await ann.state();
    const signature = flipped(state.account_signature);
    expect(await codeOf({ ...state, account_signature: signature })).toBe('invalid_signature');
    const [certificate] = state.certificates;
    const forged = {
      ...certificate,
      device_signature: flipped(certificate?.device_signature ?? ''),
    };
    const around = await signDeviceState(network, ann.signer, {
      revision: ann.nextRevision(),
      certificates: [forged as typeof certificate & object],
    });
    expect(await codeOf(around)).toBe('invalid_signature');
  });

  test('a state over 131,072 bytes, a certificate over 4,096', async () => {
    const state = await ann.state();
    const padded = { ...state, extra: '' };
    const room = 131_072 - canonicalJson(padded).length;
    expect(await codeOf({ ...padded, extra: 'x'.repeat(room) })).toBe('invalid_signature');
    expect(await codeOf({ ...padded, extra: 'x'.repeat(room + 1) })).toBe('request_too_large');
    const [certificate] = state.certificates;
    const large = { ...certificate, extra: 'x'.repeat(4_096) };
    expect(await codeOf({ ...state, certificates: [large] })).toBe('request_too_large');
  });

  test('a signature that verified before does not carry another state', async () => {
    const state = await ann.state();
    await publish(state);
    expect(await codeOf({ ...state, extra: 1 })).toBe('invalid_signature');
    expect(await codeOf({ ...state, account_signature: encodeBase64url(new Uint8Array(64)) })).toBe(
      'invalid_signature',
    );
  });
});
