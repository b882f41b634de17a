import { encodeBase64url } from '@posthouse/protocol';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AdmissionWorld, ownPeerByte } from './admission-world.ts';
import { peerText, type RemoteRelay } from './remote-relay.ts';

let world: AdmissionWorld;
let remote: RemoteRelay;
beforeEach(async () => {
  world = await AdmissionWorld.start();
  remote = await world.listed(1);
});
afterEach(() => world[Symbol.asyncDispose]());

const signal = new AbortController().signal;
/** The check that refused, or `admitted`. */
async function checkOf(admitted: Promise<unknown>): Promise<string> {
  try {
    await admitted;
    return 'admitted';
  } catch (error) {
    return (error as { check?: string }).check ?? String(error);
  }
}

describe('07 §B4: a relay is admitted', () => {
  test('from an inbound handshake alone, without an HTTPS request', async () => {
    const handshake = await remote.handshake();
    const peer = await world.eligibility.admit(handshake, {}, signal);
    expect(peer).toMatchObject({
      relayId: remote.relayId,
      peerId: handshake.peerId,
      descriptor: JSON.parse(handshake.descriptor),
      addresses: [{ family: 'ip4', host: '127.0.0.1', port: 4201, peerId: handshake.peerId }],
    });
    expect(world.eligibility.find(remote.relayId)).toEqual(peer);
    expect(world.eligibility.all()).toEqual([peer]);
    expect(remote.requests).toBe(0);
    expect(world.context.metrics.value('peers', { state: 'eligible' })).toBe(1);
  });

  test('as the relay and Peer ID that were dialled', async () => {
    const handshake = { ...(await remote.handshake()), direction: 'outbound' as const };
    const expected = { relayId: remote.relayId, peerId: handshake.peerId };
    const peer = await world.eligibility.admit(handshake, expected, signal);
    expect(peer.relayId).toBe(remote.relayId);
  });

  test('known by a Peer ID and an address only', async () => {
    const handshake = { ...(await remote.handshake()), direction: 'outbound' as const };
    const { peerId } = handshake;
    expect(await world.eligibility.admit(handshake, { peerId }, signal)).toMatchObject({ peerId });
  });

  test('twice, over two connections, as one peer', async () => {
    await world.admit(remote);
    await world.admit(remote);
    expect(world.eligibility.all()).toHaveLength(1);
    expect(world.context.metrics.value('peers_admitted', { direction: 'inbound' })).toBe(1);
    expect(world.drops).toEqual([]);
  });
});

describe('07 §B4: each check alone refuses', () => {
  test.each<[string, () => Promise<unknown>]>([
    [
      'peer_id_expected',
      async () => {
        const { peerId } = await (await world.listed(2)).handshake();
        return world.eligibility.admit(await remote.handshake(), { peerId }, signal);
      },
    ],
    [
      'descriptor_malformed',
      async () => {
        const handshake = await remote.handshake();
        const descriptor = handshake.descriptor.padEnd(16_385);
        return world.eligibility.admit({ ...handshake, descriptor }, {}, signal);
      },
    ],
    [
      'descriptor_malformed',
      async () => {
        const handshake = await remote.handshake();
        const descriptor = handshake.descriptor.replace('{', '{"relay_id":"0x00",');
        return world.eligibility.admit({ ...handshake, descriptor }, {}, signal);
      },
    ],
    [
      'descriptor_malformed',
      async () => {
        const handshake = await remote.handshake();
        const upper = remote.relayId.replace(/[a-f]/, (letter) => letter.toUpperCase());
        const descriptor = handshake.descriptor.replace(remote.relayId, upper);
        return world.eligibility.admit({ ...handshake, descriptor }, {}, signal);
      },
    ],
    [
      'relay_id_expected',
      async () => {
        const { relayId } = await world.listed(2);
        return world.eligibility.admit(await remote.handshake(), { relayId }, signal);
      },
    ],
    [
      'own_relay',
      async () => {
        const handshake = await remote.handshake();
        const descriptor = handshake.descriptor.replace(remote.relayId, world.ownId);
        return world.eligibility.admit({ ...handshake, descriptor }, {}, signal);
      },
    ],
    [
      'blocked',
      async () => {
        await world.block(remote.relayId);
        return world.admit(remote);
      },
    ],
    ['not_listed', async () => world.admit(await world.remote(2))],
    [
      'not_active',
      () => {
        world.list(remote.entry('disabled'));
        return world.admit(remote);
      },
    ],
    [
      'not_active',
      () => {
        world.list(remote.entry('suspended'));
        return world.admit(remote);
      },
    ],
    [
      'registry_unavailable',
      () => {
        world.breakRegistry();
        return world.admit(remote);
      },
    ],
    // 07 §A9, rule 1: the key derives the relay ID.
    [
      'descriptor_invalid',
      async () => {
        const handshake = await remote.handshake();
        const key = (await world.remote(2)).signer.publicKey;
        const descriptor = handshake.descriptor.replace(remote.signer.publicKey, key);
        return world.eligibility.admit({ ...handshake, descriptor }, {}, signal);
      },
    ],
    // Rule 2: the signature.
    [
      'descriptor_signature',
      async () => {
        const handshake = await remote.handshake();
        const descriptor = handshake.descriptor.replace('/tcp/4201', '/tcp/4202');
        return world.eligibility.admit({ ...handshake, descriptor }, {}, signal);
      },
    ],
    [
      'descriptor_signature',
      async () => {
        const handshake = await remote.handshake();
        const other = encodeBase64url(new Uint8Array(64).fill(1));
        const { relay_signature: own } = JSON.parse(handshake.descriptor);
        const descriptor = handshake.descriptor.replace(own, other);
        return world.eligibility.admit({ ...handshake, descriptor }, {}, signal);
      },
    ],
    // Rule 4: an HTTPS and a libp2p TCP address.
    [
      'descriptor_invalid',
      async () => {
        const handshake = await remote.handshake();
        const descriptor = handshake.descriptor.replace(remote.endpoint, 'ftp://relay.example');
        return world.eligibility.admit({ ...handshake, descriptor }, {}, signal);
      },
    ],
    // Rule 5: not expired.
    [
      'descriptor_expired',
      async () => {
        const handshake = await remote.handshake({ expires_at: world.clock.now() });
        return world.eligibility.admit(handshake, {}, signal);
      },
    ],
    // Rule 6: capabilities within limits.
    [
      'descriptor_invalid',
      async () => {
        const handshake = await remote.handshake({ capabilities: ['x'] });
        const descriptor = handshake.descriptor.replace('["x"]', `["${'x'.repeat(129)}"]`);
        return world.eligibility.admit({ ...handshake, descriptor }, {}, signal);
      },
    ],
    // Rule 7: one Peer ID.
    [
      'descriptor_invalid',
      async () => {
        const handshake = await remote.handshake();
        const second = `"/ip4/127.0.0.1/tcp/1/p2p/${peerText(9)}"`;
        const descriptor = handshake.descriptor.replace(/("\/ip4[^"]*")/, `$1,${second}`);
        return world.eligibility.admit({ ...handshake, descriptor }, {}, signal);
      },
    ],
    [
      'peer_id_bound',
      async () => {
        const { peerId } = await (await world.remote(2)).handshake();
        return world.eligibility.admit({ ...(await remote.handshake()), peerId }, {}, signal);
      },
    ],
    [
      'peer_id_taken',
      async () => {
        await world.admit(remote);
        const second = await world.listed(2);
        second.peerByte = remote.peerByte;
        return world.admit(second);
      },
    ],
    [
      'peer_id_taken',
      () => {
        remote.peerByte = ownPeerByte;
        return world.admit(remote);
      },
    ],
  ])('%s (%#)', async (check, admit) => {
    const before = world.eligibility.all();
    const { metrics } = world.context;
    expect(await checkOf(admit())).toBe(check);
    expect(metrics.value('peers_refused', { check })).toBe(1);
    const entered = world.eligibility.all().filter((peer) => !before.includes(peer));
    // A relay that a test admits first stays; the refused one is not in the set.
    expect(entered.map(({ relayId }) => relayId)).toEqual(
      check === 'peer_id_taken' && entered.length > 0 ? [remote.relayId] : [],
    );
  });

  test('full: the limit of admitted relays', async () => {
    await using small = await AdmissionWorld.start({ federationPeers: 1 });
    const first = await small.listed(1);
    const second = await small.listed(2);
    await small.admit(first);
    expect(await checkOf(small.admit(second))).toBe('full');
    expect(await checkOf(small.admit(first))).toBe('admitted');
  });

  test('a handshake that was given up admits no relay', async () => {
    const ended = new AbortController();
    ended.abort(new Error('given up'));
    const admitting = world.eligibility.admit(await remote.handshake(), {}, ended.signal);
    await expect(admitting).rejects.toThrow('given up');
    expect(world.eligibility.all()).toEqual([]);
  });

  test('a relay that is suspended during the handshake is not admitted', async () => {
    const descriptor = await remote.handshake();
    const { verifier } = world.context;
    const verify = verifier.verify.bind(verifier);
    verifier.verify = async (checks, what) => {
      await verify(checks, what);
      world.list(remote.entry('suspended'));
      await world.run('registry');
    };
    expect(await checkOf(world.eligibility.admit(descriptor, {}, signal))).toBe('not_active');
    expect(world.eligibility.all()).toEqual([]);
  });
});

describe('strangers do not drive registry reads', () => {
  test('an address that invents relays is refused without a read', async () => {
    const checks: string[] = [];
    for (const byte of [11, 12, 13]) {
      const stranger = await world.remote(byte);
      const handshake = { ...(await stranger.handshake()), address: '192.0.2.99' };
      checks.push(await checkOf(world.eligibility.admit(handshake, {}, signal)));
    }
    expect(checks).toEqual(['not_listed', 'registry_busy', 'registry_busy']);
  });

  test('addresses of one IPv6 network count as one, a dial of our own does not count', async () => {
    const checks: string[] = [];
    for (const byte of [11, 12]) {
      const stranger = await world.remote(byte);
      const handshake = { ...(await stranger.handshake()), address: `2001:db8:1:2::${byte}` };
      checks.push(await checkOf(world.eligibility.admit(handshake, {}, signal)));
      const { relayId } = stranger;
      const dialled = { ...handshake, direction: 'outbound' as const };
      checks.push(await checkOf(world.eligibility.admit(dialled, { relayId }, signal)));
    }
    expect(checks).toEqual(['not_listed', 'not_listed', 'registry_busy', 'not_listed']);
  });
});

describe('07 §B10, check 6: the key that signs routes for a relay', () => {
  test('is that of a verified descriptor, fetched if none is known', async () => {
    expect(await world.eligibility.verifyRouteRelay(remote.relayId)).toBe(remote.signer.publicKey);
    expect(await world.eligibility.verifyRouteRelay(remote.relayId)).toBe(remote.signer.publicKey);
    expect(remote.requests).toBe(1);
    expect(world.eligibility.all()).toEqual([]);
  });

  test('is this relay its own, while it is active', async () => {
    const { publicKey } = world.context.identity;
    expect(await world.eligibility.verifyRouteRelay(world.ownId)).toBe(publicKey);
    world.list({ ...world.ownEntry, status: 'suspended' });
    world.clock.advance(60);
    expect(await checkOf(world.eligibility.verifyRouteRelay(world.ownId))).toBe('not_active');
  });

  test('is none of a relay that is not active, not listed, or without a descriptor', async () => {
    const key = async (relay: RemoteRelay) =>
      checkOf(world.eligibility.verifyRouteRelay(relay.relayId));
    world.list(remote.entry('disabled'));
    expect(await key(remote)).toBe('not_active');
    expect(await key(await world.remote(2))).toBe('not_listed');
    const silent = await world.listed(3);
    silent.answer = (response) => response.writeHead(500).end();
    expect(await key(silent)).toBe('descriptor_unavailable');
  });
});
