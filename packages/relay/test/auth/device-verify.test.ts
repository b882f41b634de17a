import {
  decodeBase64url,
  deviceAuthInput,
  encodeBase64url,
  relayOrigin,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { describe, expect, test } from 'vitest';
import { Person } from '../fixtures/person.ts';
import { codeOf } from '../support/http.ts';
import { network } from '../support/in-process-relay.ts';
import { servedRelay } from '../support/served-relay.ts';

const door = servedRelay();
const ann = door.person('ann', ['phone', 'laptop']);

const verify = (proof: unknown) => door.http().call('auth.device.verify', proof);
const proofOf = async (person = ann, device = 'phone', wrong = {}) => {
  const { nonce } = await door.challenge(person.account);
  return door.deviceProof(person.device(device), nonce, wrong);
};
const codeFor = async (proof: unknown) => codeOf(await verify(proof));

describe('02 §9.3, §10.1: a session', () => {
  test('credentials are a token of 32 bytes, the mode and the expiry', async () => {
    const answer = await verify(await proofOf());
    const { token, ...rest } = JSON.parse(answer.text);
    expect(answer.status).toBe(200);
    expect(decodeBase64url(token)).toHaveLength(32);
    expect(rest).toEqual({ mode: 'device', expires_at: door.clock.now() + 86_400 });
  });

  test('each authentication makes a token of its own', async () => {
    const first = await door.logInDevice(ann);
    const second = await door.logInDevice(ann);
    expect(second.token).not.toBe(first.token);
  });

  test('§10.2: it ends with the latest certificate if that is sooner', async () => {
    const expiresAt = door.clock.now() + 1_000;
    await ann.addDevice('watch', { expiresAt });
    await ann.publishState();
    expect((await door.logInDevice(ann, 'watch')).expires_at).toBe(expiresAt);
  });

  test('an older certificate of the same device is valid as proof and does not shorten the session', async () => {
    const old = ann.device().certificate;
    await ann.addDevice('phone', { expiresAt: door.clock.now() + 2_000 });
    await ann.publishState();
    const { nonce } = await door.challenge(ann.account);
    const answer = await verify(door.deviceProof({ ...ann.device(), certificate: old }, nonce));
    expect(JSON.parse(answer.text)).toMatchObject({ expires_at: door.clock.now() + 2_000 });
  });

  test('neither token nor nonce is stored in the database', async () => {
    const { token } = await door.logInDevice(ann);
    const rows = await door.relay.context.storage.read((tx) =>
      tx.all('SELECT * FROM auth_sessions'),
    );
    expect(rows.length).toBeGreaterThan(0);
    expect(JSON.stringify(rows)).not.toContain(token);
  });
});

describe('02 §9.3: the order of checks', () => {
  test('step 2: exactly at the tolerance passes, a second more is clock_skew', async () => {
    const now = door.clock.now();
    expect(await codeFor(await proofOf(ann, 'phone', { timestamp: now - 300 }))).toBe('ok');
    expect(await codeFor(await proofOf(ann, 'phone', { timestamp: now + 300 }))).toBe('ok');
    expect(await codeFor(await proofOf(ann, 'phone', { timestamp: now - 301 }))).toBe('clock_skew');
    expect(await codeFor(await proofOf(ann, 'phone', { timestamp: now + 301 }))).toBe('clock_skew');
  });

  test('step 2 comes before step 3', async () => {
    const proof = await proofOf(ann, 'phone', { timestamp: 1 });
    expect(await codeFor({ ...proof, device_signature: 'A'.repeat(86) })).toBe('clock_skew');
  });

  test.each([
    ['another origin', { origin: 'https://elsewhere.example' }],
    ['another relay', { relayId: `0x${'1'.repeat(40)}` }],
  ])('step 3: a proof for %s is invalid_signature', async (_, wrong) => {
    expect(await codeFor(await proofOf(ann, 'phone', wrong))).toBe('invalid_signature');
  });

  test("step 3: another device's proof is invalid_signature", async () => {
    const proof = await proofOf(ann, 'phone');
    const other = ann.device('laptop').certificate;
    expect(await codeFor({ ...proof, signer_certificate: other })).toBe('invalid_signature');
  });

  test('step 3: a signature over an input without relay_id does not verify', async () => {
    const proof = await proofOf();
    const input: JsonObject = {
      $type: network.type('relay.auth'),
      origin: relayOrigin(door.relay.https[0] as string),
      account: ann.account,
      device_id: ann.device().deviceId,
      nonce: String(proof.nonce),
      timestamp: door.clock.now(),
    };
    const signature = ann.device().signer.sign(network.bytes(input));
    expect(await codeFor({ ...proof, device_signature: encodeBase64url(signature) })).toBe(
      'invalid_signature',
    );
  });

  test('members of the signed object in the request have no effect', async () => {
    const proof = await proofOf();
    expect(await codeFor({ ...proof, origin: 'https://elsewhere.example', relay_id: 'x' })).toBe(
      'ok',
    );
  });

  test.each(['device_signature', 'account_signature'])(
    '§18: a certificate whose %s is wrong is invalid_signature',
    async (name) => {
      const { certificate } = ann.device();
      const broken = { ...certificate, [name]: `A${certificate.device_signature.slice(1)}` };
      expect(await codeFor({ ...(await proofOf()), signer_certificate: broken })).toBe(
        'invalid_signature',
      );
    },
  );

  test('a certificate over 4,096 bytes is request_too_large', async () => {
    const certificate = { ...ann.device().certificate, extra: 'x'.repeat(4_096) };
    expect(await codeFor({ ...(await proofOf()), signer_certificate: certificate })).toBe(
      'request_too_large',
    );
  });

  test('a certificate whose key does not derive its account is bad_request', async () => {
    const other = new Person(door, 'bob');
    const certificate = {
      ...ann.device().certificate,
      account_public_key: other.signer.publicKey,
    };
    expect(await codeFor({ ...(await proofOf()), signer_certificate: certificate })).toBe(
      'bad_request',
    );
  });

  test("§18: a certificate of another account than the nonce's is unauthorized", async () => {
    const bob = await door.register('bob');
    const { nonce } = await door.challenge(ann.account);
    expect(await codeFor(door.deviceProof(bob.device(), nonce))).toBe('unauthorized');
  });
});

describe('02 §9.3 step 4: current validity', () => {
  test.each([
    ['unknown', async () => void (await ann.addDevice('tablet'))],
    [
      'removed',
      async () => {
        await ann.addDevice('tablet');
        await ann.publishState();
        await ann.publishState(await ann.state({ devices: ['phone', 'laptop'] }));
      },
    ],
    [
      'expired',
      async () => {
        await ann.addDevice('tablet', { expiresAt: door.clock.now() + 10 });
        await ann.publishState();
        door.clock.advance(10);
      },
    ],
    [
      'not yet in effect',
      async () => {
        await ann.addDevice('tablet', { notBefore: door.clock.now() + 10 });
        await ann.publishState();
      },
    ],
  ])('a device that is %s is device_unknown, with one message for all', async (_, prepare) => {
    await prepare();
    const answer = await verify(await proofOf(ann, 'tablet'));
    expect(JSON.parse(answer.text)).toEqual({
      code: 'device_unknown',
      message: 'the device has no current authorization',
    });
  });

  test('a certificate takes effect in the second of its not_before', async () => {
    await ann.addDevice('tablet', { notBefore: door.clock.now() + 10 });
    await ann.publishState();
    door.clock.advance(10);
    expect(await codeFor(await proofOf(ann, 'tablet'))).toBe('ok');
  });

  test('§18: an account without a known route is route_not_found', async () => {
    const stranger = new Person(door, 'stranger');
    await stranger.addDevice('phone');
    expect(await codeFor(await proofOf(stranger))).toBe('route_not_found');
  });

  test('a pre-stored state authenticates no device before a route', async () => {
    const newcomer = new Person(door, 'newcomer');
    await newcomer.addDevice('phone');
    const { token } = await door.logInAccount(newcomer);
    const state = await newcomer.state();
    const staged = await door.http().call('device.state.publish', state, { token });
    expect(JSON.parse(staged.text)).toMatchObject({ status: 'staged' });
    expect(await codeFor(await proofOf(newcomer))).toBe('route_not_found');
  });
});

test("the rebuilt input is the chapter's, with the relay's own identity and origin", async () => {
  const { nonce } = await door.challenge(ann.account);
  const timestamp = door.clock.now();
  const input = deviceAuthInput(network, {
    relay_id: door.relayId,
    origin: relayOrigin(door.relay.wss[0] as string),
    account: ann.account,
    device_id: ann.device().deviceId,
    nonce,
    timestamp,
  });
  const proof = {
    nonce,
    timestamp,
    signer_certificate: ann.device().certificate,
    device_signature: encodeBase64url(ann.device().signer.sign(input)),
  };
  expect(await codeFor(proof)).toBe('ok');
});
