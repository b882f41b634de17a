import { decodeBase64url } from '@posthouse/protocol';
import { describe, expect, test } from 'vitest';
import { codeOf } from '../support/http.ts';
import { servedRelay } from '../support/served-relay.ts';

const relay = servedRelay({
  // Two origins of one relay that differ in their paths.
  public: {
    https: ['https://127.0.0.1:0/svc/v1', 'https://localhost:0/other/svc/v1'],
    wss: ['wss://127.0.0.1:0/svc/v1', 'wss://localhost:0/other/svc/v1'],
  },
});
const ann = relay.person('ann');

const verify = async (proof: unknown, index = 0) =>
  codeOf(await relay.http(index).call('auth.device.verify', proof));

describe('02 §9.2: auth.challenge', () => {
  test('a nonce is 32 fresh bytes with the times it can be used at', async () => {
    const first = await relay.challenge(ann.account);
    const second = await relay.challenge(ann.account);
    expect(decodeBase64url(first.nonce)).toHaveLength(32);
    expect(second.nonce).not.toBe(first.nonce);
    expect(first.created_at).toBe(relay.clock.now());
    expect(first.expires_at).toBe(relay.clock.now() + 300);
  });

  test('an unknown account gets a challenge too', async () => {
    const stranger = `neo:860833102:NUz6PKTAM7NbPJzkKJFNay3VckQtcDkgWo`;
    expect(codeOf(await relay.http().call('auth.challenge', { account: stranger }))).toBe('ok');
  });

  test.each([
    ['of another network', 'neo:860833101:NUz6PKTAM7NbPJzkKJFNay3VckQtcDkgWo'],
    ['with a wrong checksum', 'neo:860833102:NUz6PKTAM7NbPJzkKJFNay3VckQtcDkgWp'],
    ['that is no account', 'ann'],
    ['that is no text', 7],
  ])('an account ID %s is bad_request', async (_, account) => {
    expect(codeOf(await relay.http().call('auth.challenge', { account }))).toBe('bad_request');
  });
});

describe('02 §9.2: the life of a challenge', () => {
  test('a challenge is valid until the second before its expiry', async () => {
    const { nonce } = await relay.challenge(ann.account);
    relay.clock.advance(299);
    expect(await verify(relay.deviceProof(ann.device(), nonce))).toBe('ok');
  });

  test('from its expiry on a challenge is unauthorized', async () => {
    const { nonce } = await relay.challenge(ann.account);
    relay.clock.advance(300);
    expect(await verify(relay.deviceProof(ann.device(), nonce))).toBe('unauthorized');
  });

  test('a nonce that was never issued is unauthorized', async () => {
    expect(await verify(relay.deviceProof(ann.device(), 'A'.repeat(43)))).toBe('unauthorized');
  });

  test('after a success it is used up', async () => {
    const { nonce } = await relay.challenge(ann.account);
    const proof = relay.deviceProof(ann.device(), nonce);
    expect(await verify(proof)).toBe('ok');
    expect(await verify(proof)).toBe('unauthorized');
  });

  test('of many attempts at once, one succeeds', async () => {
    const { nonce } = await relay.challenge(ann.account);
    const proof = relay.deviceProof(ann.device(), nonce);
    const codes = await Promise.all(Array.from({ length: 8 }, () => verify(proof)));
    expect(codes.filter((code) => code === 'ok')).toHaveLength(1);
    expect(codes.filter((code) => code === 'unauthorized')).toHaveLength(7);
  });

  test('a restart changes neither a challenge nor its expiry', async () => {
    const { nonce } = await relay.challenge(ann.account);
    const used = await relay.challenge(ann.account);
    expect(await verify(relay.deviceProof(ann.device(), used.nonce))).toBe('ok');
    await relay.restart();
    expect(await verify(relay.deviceProof(ann.device(), nonce))).toBe('ok');
    expect(await verify(relay.deviceProof(ann.device(), used.nonce))).toBe('unauthorized');
  });

  test.each<[string, (proof: Record<string, unknown>) => Record<string, unknown>, string]>([
    ['a wrong signature', (proof) => ({ ...proof, timestamp: 1_750_000_001 }), 'invalid_signature'],
    ['a clock far off', (proof) => ({ ...proof, timestamp: 1 }), 'clock_skew'],
    ['a timestamp that is no integer', (proof) => ({ ...proof, timestamp: 'x' }), 'bad_request'],
    ['no timestamp', ({ timestamp, ...rest }) => rest, 'bad_request'],
    ['no certificate', ({ signer_certificate, ...rest }) => rest, 'bad_request'],
    ['a null member', (proof) => ({ ...proof, extra: null }), 'bad_request'],
    ['nothing but the nonce', ({ nonce }) => ({ nonce }), 'bad_request'],
  ])('an attempt with %s uses it up', async (_, change, code) => {
    const { nonce } = await relay.challenge(ann.account);
    const proof = relay.deviceProof(ann.device(), nonce);
    expect(await verify(change(proof))).toBe(code);
    expect(await verify(proof)).toBe('unauthorized');
  });

  test('§18: an unknown nonce comes before everything else that is wrong', async () => {
    expect(await verify({ nonce: 'A'.repeat(43), timestamp: 'x' })).toBe('unauthorized');
  });

  test.each([[''], ['with space'], ['x'.repeat(257)], [7]])(
    'the nonce %j cannot be one: bad_request',
    async (nonce) => {
      expect(await verify({ ...relay.deviceProof(ann.device(), 'x'), nonce })).toBe('bad_request');
    },
  );

  test('§18: a verification on another transport of the origin is accepted', async () => {
    const { nonce } = await relay.challenge(ann.account);
    const socket = await relay.socket();
    const proof = relay.deviceProof(ann.device(), nonce);
    expect(await socket.call('auth.device.verify', proof)).toHaveProperty('result.mode', 'device');
  });

  test('§18: at another origin of the relay it is unauthorized and used up', async () => {
    const { nonce } = await relay.challenge(ann.account);
    const proof = relay.deviceProof(ann.device(), nonce);
    expect(await verify(proof, 1)).toBe('unauthorized');
    expect(await verify(proof, 0)).toBe('unauthorized');
  });
});
