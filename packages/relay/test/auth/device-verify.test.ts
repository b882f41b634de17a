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

const relay = servedRelay();
const ann = relay.person('ann', ['phone', 'laptop']);

const verify = (proof: unknown) => relay.http().call('auth.device.verify', proof);
const proofOf = async (person = ann, device = 'phone', wrong = {}) => {
  const { nonce } = await relay.challenge(person.account);
  return relay.deviceProof(person.device(device), nonce, wrong);
};
const codeFor = async (proof: unknown) => codeOf(await verify(proof));

describe('02 §9.3, §10.1: a session', () => {
  test('credentials are a token of 32 bytes, the mode and the expiry', async () => {
    const answer = await verify(await proofOf());
    const { token, ...rest } = JSON.parse(answer.text);
    expect(answer.status).toBe(200);
    expect(decodeBase64url(token)).toHaveLength(32);
    expect(rest).toEqual({ mode: 'device', expires_at: relay.clock.now() + 86_400 });
  });

  test('each authentication makes a token of its own', async () => {
    const first = await relay.logInDevice(ann);
    const second = await relay.logInDevice(ann);
    expect(second.token).not.toBe(first.token);
  });

  test('§10.2: it ends with the latest certificate if that is sooner', async () => {
    const expiresAt = relay.clock.now() + 1_000;
    await ann.addDevice('watch', { expiresAt });
    await ann.publishState();
    expect((await relay.logInDevice(ann, 'watch')).expires_at).toBe(expiresAt);
  });

  test('an older certificate of the same device is valid as proof and does not shorten the session', async () => {
    const old = ann.device().certificate;
    await ann.addDevice('phone', { expiresAt: relay.clock.now() + 2_000 });
    await ann.publishState();
    const { nonce } = await relay.challenge(ann.account);
    const answer = await verify(relay.deviceProof({ ...ann.device(), certificate: old }, nonce));
    expect(JSON.parse(answer.text)).toMatchObject({ expires_at: relay.clock.now() + 2_000 });
  });

  test('neither token nor nonce is stored in the database', async () => {
    const { token } = await relay.logInDevice(ann);
    const rows = await relay.server.context.storage.read((tx) =>
      tx.all('SELECT * FROM auth_sessions'),
    );
    expect(rows.length).toBeGreaterThan(0);
    expect(JSON.stringify(rows)).not.toContain(token);
  });
});

describe('02 §9.3: the order of checks', () => {
  test('step 2: exactly at the tolerance passes, a second more is clock_skew', async () => {
    const now = relay.clock.now();
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
      origin: relayOrigin(relay.server.https[0] as string),
      account: ann.account,
      device_id: ann.device().deviceId,
      nonce: String(proof.nonce),
      timestamp: relay.clock.now(),
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
    const other = new Person(relay, 'bob');
    const certificate = {
      ...ann.device().certificate,
      account_public_key: other.signer.publicKey,
    };
    expect(await codeFor({ ...(await proofOf()), signer_certificate: certificate })).toBe(
      'bad_request',
    );
  });

  test("§18: a certificate of another account than the nonce's is unauthorized", async () => {
    const bob = await relay.register('bob');
    const { nonce } = await relay.challenge(ann.account);
    expect(await codeFor(relay.deviceProof(bob.device(), nonce))).toBe('unauthorized');
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
        await ann.addDevice('tablet', { expiresAt: relay.clock.now() + 10 });
        await ann.publishState();
        relay.clock.advance(10);
      },
    ],
    [
      'not yet in effect',
      async () => {
        await ann.addDevice('tablet', { notBefore: relay.clock.now() + 10 });
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
    await ann.addDevice('tablet', { notBefore: relay.clock.now() + 10 });
    await ann.publishState();
    relay.clock.advance(10);
    expect(await codeFor(await proofOf(ann, 'tablet'))).toBe('ok');
  });

  test('§18: an account without a known route is route_not_found', async () => {
    const stranger = new Person(relay, 'stranger');
    await stranger.addDevice('phone');
    expect(await codeFor(await proofOf(stranger))).toBe('route_not_found');
  });

  test('a pre-stored state authenticates no device before a route', async () => {
    const newcomer = new Person(relay, 'newcomer');
    await newcomer.addDevice('phone');
    const { token } = await relay.logInAccount(newcomer);
    const state = await newcomer.state();
    const staged = await relay.http().call('device.state.publish', state, { token });
    expect(JSON.parse(staged.text)).toMatchObject({ status: 'staged' });
    expect(await codeFor(await proofOf(newcomer))).toBe('route_not_found');
  });
});

test("the rebuilt input is the chapter's, with the relay's own identity and origin", async () => {
  const { nonce } = await relay.challenge(ann.account);
  const timestamp = relay.clock.now();
  const input = deviceAuthInput(network, {
    relay_id: relay.relayId,
    origin: relayOrigin(relay.server.wss[0] as string),
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
