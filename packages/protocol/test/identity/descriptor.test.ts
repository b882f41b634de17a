import { describe, expect, test } from 'vitest';
import { noblePrimitives } from '../../src/crypto/index.ts';
import { formatPeerId } from '../../src/identity/peer-id.ts';
import {
  accountSigner,
  checkDescriptor,
  checkDescriptorStatus,
  descriptorAddresses,
  descriptorPeerId,
  descriptorSigningInput,
  encodeBase64url,
  hasCapability,
  hex,
  peerIdOf,
  type RelayDescriptor,
  type RelayEntry,
  signDescriptor,
  verifyDescriptor,
} from '../../src/index.ts';
import { canonicalJson } from '../../src/json/index.ts';
import {
  codeOf,
  counting,
  descriptor,
  network,
  otherAccount,
  otherRegistry,
  relay,
  relayId,
  tampered,
  without,
} from './appendix.ts';

const entry: RelayEntry = {
  relay_id: relayId,
  endpoint: 'https://relay.example.com/svc/v1',
  status: 'active',
  updated_at: 0,
};
const now = descriptor.expires_at - 1;
const [https, wss, libp2p] = descriptor.endpoints as [string, string, string];
const check = (value: unknown) => codeOf(() => checkDescriptor(network, value));
const verify = (value: unknown) => codeOf(() => verifyDescriptor(network, value, { entry, now }));

/** A descriptor signed over whatever members it has, without any check. */
async function signed(members: Record<string, unknown>): Promise<RelayDescriptor> {
  const unsigned = {
    ...(without(descriptor, 'relay_signature') as RelayDescriptor),
    ...members,
  };
  const signature = await relay.sign(descriptorSigningInput(network, unsigned));
  return { ...unsigned, relay_signature: encodeBase64url(signature) };
}

describe('01 §13: RelayDescriptor', () => {
  test('01 appendix A: input and signature of the example', async () => {
    const input = descriptorSigningInput(network, descriptor);
    expect([input.length, hex(noblePrimitives.sha256(input))]).toEqual([
      467,
      '2f49829dc44a9be68f78166bdad5f12d07a5add59ae7c6bbafe71215142cf9ed',
    ]);
    expect(verify(descriptor)).toBeUndefined();
    const { endpoints, capabilities = [], expires_at } = descriptor;
    const made = await signDescriptor(network, relay, { endpoints, capabilities, expires_at });
    expect(canonicalJson(made)).toBe(canonicalJson(descriptor));
  });

  test.each(['$type', 'relay_id', 'public_key', 'endpoints', 'expires_at', 'relay_signature'])(
    'a descriptor without %s is refused',
    (name) => {
      expect(check(without(descriptor, name))).toBe('bad_request');
    },
  );

  test.each([
    ['$type', 'svc.relay'],
    ['relay_id', relayId.toUpperCase()],
    ['public_key', otherAccount.publicKey],
    ['public_key', 'x'],
    ['endpoints', []],
    ['endpoints', https],
    ['endpoints', [...descriptor.endpoints, '']],
    ['endpoints', [...descriptor.endpoints, 5]],
    ['capabilities', null],
    ['capabilities', 'group.host.v1'],
    ['capabilities', ['']],
    ['capabilities', ['a', 'b', 'a']],
    ['expires_at', '1767225600'],
    ['relay_signature', ''],
    ['$context', 'x'],
    ['zz', { a: null }],
  ])('a wrong %s is refused: %j', (name, value) => {
    expect(check({ ...descriptor, [name]: value })).toBe('bad_request');
  });

  test('capabilities may be absent or empty, and unknown ones are ignored', async () => {
    for (const capabilities of [[], ['zz.v9', 'Group.host.v1']]) {
      const value = await signed({ capabilities });
      expect(verify(value)).toBeUndefined();
      expect(hasCapability(value, 'group.host.v1')).toBe(false);
    }
    const bare = without(descriptor, 'capabilities') as RelayDescriptor;
    expect(check(bare)).toBeUndefined();
    expect(hasCapability(bare, 'group.host.v1')).toBe(false);
    expect(hasCapability(descriptor, 'group.host.v1')).toBe(true);
  });

  test('at most 64 capabilities of at most 128 bytes each', async () => {
    const names = (count: number) => Array.from({ length: count }, (_, index) => `c${index}`);
    expect(verify(await signed({ capabilities: names(64) }))).toBeUndefined();
    expect(check(await signed({ capabilities: names(65) }))).toBe('bad_request');
    for (const [name, code] of [
      ['x'.repeat(127), undefined],
      ['x'.repeat(128), undefined],
      ['x'.repeat(129), 'bad_request'],
      ['é'.repeat(64), undefined],
      [`é${'x'.repeat(127)}`, 'bad_request'],
    ] as const) {
      expect(check({ ...descriptor, capabilities: [name] })).toBe(code);
    }
  });

  test('EP1: an HTTPS and a libp2p TCP address are needed, WSS is not', async () => {
    expect(verify(await signed({ endpoints: [https, libp2p] }))).toBeUndefined();
    expect(check({ ...descriptor, endpoints: [https, wss] })).toBe('bad_request');
    expect(check({ ...descriptor, endpoints: [wss, libp2p] })).toBe('bad_request');
    const quic = libp2p.replace('/tcp/4201', '/udp/4201/quic-v1');
    expect(check({ ...descriptor, endpoints: [https, quic] })).toBe('bad_request');
  });

  test('EP2: no address twice; order is free but signed as it is', async () => {
    expect(check({ ...descriptor, endpoints: [https, libp2p, https] })).toBe('bad_request');
    const reversed = [...descriptor.endpoints].reverse();
    expect(verify(await signed({ endpoints: reversed }))).toBeUndefined();
    expect(verify({ ...descriptor, endpoints: reversed })).toBe('invalid_signature');
  });

  test.each([
    'https://relay.example.com/svc/v1?',
    'HTTPS://relay.example.com',
    'wss://relay.example.com/#',
    'WSS://relay.example.com',
    '/dns4/relay.example.com/tcp/4201',
    '/dns4/relay.example.com/tcp/x/p2p/12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA',
  ])('EP3, EP4: one malformed address invalidates the whole: %j', async (bad) => {
    const value = await signed({ endpoints: [...descriptor.endpoints, bad] });
    expect(check(value)).toBe('bad_request');
  });

  test('EP5: an address is signed as its exact text, not as a normalized URL', async () => {
    const upper = await signed({ endpoints: [https.replace('relay', 'RELAY'), libp2p] });
    expect(verify(upper)).toBeUndefined();
    expect(verify({ ...upper, endpoints: [https, libp2p] })).toBe('invalid_signature');
  });

  test('EP6: addresses of other transports stay for the signature and are otherwise ignored', async () => {
    const foreignPeer = peerIdOf(counting(9));
    const other = `/dns4/relay.example.com/udp/4201/quic-v1/p2p/${foreignPeer}`;
    const value = await signed({ endpoints: [other, https, libp2p, 'new://x'] });
    expect(verify(value)).toBeUndefined();
    expect(descriptorAddresses(value)).toEqual({ https: [https], wss: [], libp2p: [libp2p] });
    expect(verify({ ...value, endpoints: [https, libp2p] })).toBe('invalid_signature');
  });

  test('addresses are told apart by transport, in the order given', () => {
    expect(descriptorAddresses(descriptor)).toEqual({
      https: [https],
      wss: [wss],
      libp2p: [libp2p],
    });
  });

  test('13.3.7: all libp2p TCP addresses carry one Peer ID', async () => {
    const peerId = formatPeerId(descriptorPeerId(descriptor));
    expect(libp2p).toMatch(new RegExp(`/${peerId}$`));
    const second = `/ip4/192.0.2.1/tcp/4201/p2p/${peerId}`;
    expect(check({ ...descriptor, endpoints: [https, libp2p, second] })).toBeUndefined();
    const foreign = `/ip4/192.0.2.1/tcp/4201/p2p/${peerIdOf(counting(9))}`;
    expect(check({ ...descriptor, endpoints: [https, libp2p, foreign] })).toBe('bad_request');
  });

  test('13.3.1: the key must derive the relay ID', async () => {
    expect(check(await signed({ relay_id: `0x${'00'.repeat(20)}` }))).toBe('bad_request');
  });

  test('13.3.2: the signature is checked over everything, on this network', async () => {
    const relay_signature = tampered(descriptor.relay_signature);
    expect(verify({ ...descriptor, relay_signature })).toBe('invalid_signature');
    expect(verify({ ...descriptor, zz: 1 })).toBe('invalid_signature');
    expect(verify(await signed({ zz: 1 }))).toBeUndefined();
    expect(codeOf(() => verifyDescriptor(otherRegistry, descriptor, { entry, now }))).toBe(
      'invalid_signature',
    );
  });

  test.each(['disabled', 'suspended'] as const)('13.3.3: a %s relay is no candidate', (status) => {
    const standing = { entry: { ...entry, status }, now };
    expect(codeOf(() => verifyDescriptor(network, descriptor, standing))).toBe('forbidden');
    expect(codeOf(() => checkDescriptorStatus(descriptor, standing))).toBe('forbidden');
  });

  test('13.3.5: it is invalid once its expiry is reached', () => {
    for (const [at, code] of [
      [descriptor.expires_at - 1, undefined],
      [descriptor.expires_at, 'stale_state'],
      [descriptor.expires_at + 1, 'stale_state'],
    ] as const) {
      expect(codeOf(() => verifyDescriptor(network, descriptor, { entry, now: at }))).toBe(code);
    }
  });

  test('13.4.4: a descriptor of another relay than the one asked for is refused', () => {
    const otherEntry = { ...entry, relay_id: `0x${'00'.repeat(20)}` };
    expect(codeOf(() => verifyDescriptor(network, descriptor, { entry: otherEntry, now }))).toBe(
      'bad_request',
    );
  });

  test('a producer cannot make one the protocol does not allow', async () => {
    await expect(
      signDescriptor(network, relay, { endpoints: [https], expires_at: 1 }),
    ).rejects.toMatchObject({ code: 'bad_request' });
  });

  test('a descriptor takes its relay ID from the signer', async () => {
    const other = accountSigner(network, counting(0x11));
    const made = await signDescriptor(network, other, {
      endpoints: [https, libp2p],
      expires_at: 1,
    });
    expect(made.relay_id).not.toBe(relayId);
    expect(check(made)).toBeUndefined();
  });
});
