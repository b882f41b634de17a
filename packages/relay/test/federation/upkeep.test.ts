import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AdmissionWorld } from './admission-world.ts';
import { peerText, type RemoteRelay } from './remote-relay.ts';

const hour = 3_600;

let world: AdmissionWorld;
let remote: RemoteRelay;
beforeEach(async () => {
  world = await AdmissionWorld.start();
  remote = await world.listed(1);
});
afterEach(() => world[Symbol.asyncDispose]());

const eligible = () => world.eligibility.all().map(({ relayId }) => relayId);
const reasons = () => world.drops.map(({ reason }) => reason);
const candidate = (options?: { isFresh?: boolean }) =>
  world.eligibility.candidate(remote.relayId, options);

describe('07 §B5: the registry is read again', () => {
  beforeEach(async () => {
    await world.run('registry');
    await world.admit(remote);
  });

  test.each(['disabled', 'suspended'] as const)('a relay that is %s leaves', async (status) => {
    const peer = world.eligibility.find(remote.relayId);
    world.list(remote.entry(status));
    world.clock.advance(600);
    await world.run('registry');
    expect(world.drops).toEqual([{ peer, reason: 'not_active' }]);
    expect(eligible()).toEqual([]);
    expect(world.context.metrics.value('peers', { state: 'eligible' })).toBe(0);
    expect(world.context.metrics.value('peers_dropped', { reason: 'not_active' })).toBe(1);
  });

  test('another relay may have the Peer ID of one that left', async () => {
    const second = await world.listed(2);
    second.peerByte = remote.peerByte;
    world.list(remote.entry('suspended'));
    world.clock.advance(600);
    await world.run('registry');
    await world.admit(second);
    expect(eligible()).toEqual([second.relayId]);
  });

  test('a relay past the limit of a long registry is asked for by itself', async () => {
    await using small = await AdmissionWorld.start({ federationRegistryRelays: 1 });
    const last = await small.listed(1);
    await small.run('registry');
    await small.admit(last);
    small.clock.advance(600);
    await small.run('registry');
    expect(small.drops).toEqual([]);
    small.list(last.entry('suspended'));
    small.clock.advance(600);
    await small.run('registry');
    expect(small.drops.map(({ reason }) => reason)).toEqual(['not_active']);
  });

  test('a relay that is listed no more leaves, its stored row too', async () => {
    world.unlist(remote.relayId);
    world.clock.advance(600);
    await world.run('registry');
    expect(reasons()).toEqual(['not_active']);
    expect(await world.rows('SELECT relay_id FROM relays')).toEqual([{ relay_id: world.ownId }]);
  });

  test('after ten minutes, not before', async () => {
    world.list(remote.entry('suspended'));
    expect(await world.run('registry')).toBe(world.clock.now() + 60);
    world.clock.advance(599);
    expect(await world.run('registry')).toBe(world.clock.now() + 1);
    expect(eligible()).toEqual([remote.relayId]);
    world.clock.advance(1);
    await world.run('registry');
    expect(eligible()).toEqual([]);
  });

  test('a clock that was set back drops no relay', async () => {
    world.clock.advance(-60);
    await world.run('registry');
    expect(world.drops).toEqual([]);
    world.breakRegistry();
    world.clock.advance(7 * hour);
    await world.run('registry');
    expect(reasons()).toEqual(['registry_unavailable']);
  });

  test('a relay that the operator blocks leaves within two seconds', async () => {
    expect(await world.run('changes')).toBe(world.clock.now() + 2);
    await world.block(remote.relayId);
    world.clock.advance(2);
    await world.run('changes');
    expect(reasons()).toEqual(['blocked']);
    await expect(candidate()).rejects.toMatchObject({ check: 'blocked' });
  });

  test('a database out of reach keeps no suspended relay in', async () => {
    world.list(remote.entry('suspended'));
    world.clock.advance(600);
    world.faults.beforeStatement = () => {
      throw new Error('out of reach');
    };
    await expect(world.run('registry')).rejects.toThrow('out of reach');
    expect(reasons()).toEqual(['not_active']);
  });

  test('its records are stored, and the status of this relay is watched', async () => {
    expect(
      await world.rows('SELECT relay_id, endpoint, status, seen_at FROM relays ORDER BY endpoint'),
    ).toEqual([
      {
        relay_id: remote.relayId,
        endpoint: remote.endpoint,
        status: 'active',
        seen_at: world.clock.now(),
      },
      {
        relay_id: world.ownId,
        endpoint: world.ownEntry.endpoint,
        status: 'active',
        seen_at: world.clock.now(),
      },
    ]);
    const { metrics } = world.context;
    expect(metrics.value('own_record_not_active')).toBe(0);
    world.list({ ...world.ownEntry, status: 'suspended' });
    for (let round = 0; round < 2; round += 1) {
      world.clock.advance(600);
      await world.run('registry');
    }
    expect(metrics.value('own_record_not_active')).toBe(1);
  });
});

describe('while the registry cannot be read', () => {
  test('admitted relays stay for six hours, and no relay is admitted after ten minutes', async () => {
    const second = await world.listed(2);
    await world.run('registry');
    await world.admit(remote);
    world.breakRegistry();
    world.clock.advance(599);
    await world.run('registry');
    await world.admit(second);
    world.clock.advance(1);
    await expect(world.admit(await world.remote(3))).rejects.toMatchObject({
      check: 'registry_unavailable',
    });
    await expect(world.admit(second)).rejects.toMatchObject({ check: 'registry_unavailable' });
    expect(eligible()).toEqual([remote.relayId, second.relayId]);
    world.clock.advance(6 * hour - 601);
    await world.run('registry');
    expect(eligible()).toHaveLength(2);
    world.clock.advance(1);
    await world.run('registry');
    expect(reasons()).toEqual(['registry_unavailable', 'registry_unavailable']);
    expect(world.context.metrics.value('registry_lost')).toBe(1);
    world.list(remote.entry());
    world.clock.advance(600);
    await world.run('registry');
    await world.admit(remote);
    expect(eligible()).toEqual([remote.relayId]);
    expect(world.context.metrics.value('registry_restored')).toBe(1);
  });

  test('it is read again after 30 seconds, then less and less often, up to ten minutes', async () => {
    world.breakRegistry();
    const { metrics } = world.context;
    const reads = () => metrics.value('registry_reads', { kind: 'all', outcome: 'error' });
    const waits: number[] = [];
    let next = (await world.run('registry')) as number;
    for (let last = world.clock.now(); waits.length < 7; ) {
      const before = reads();
      world.clock.advance(next - world.clock.now());
      next = (await world.run('registry')) as number;
      if (reads() === before) continue;
      waits.push(world.clock.now() - last);
      last = world.clock.now();
    }
    expect(waits).toEqual([30, 60, 120, 240, 480, 600, 600]);
  });

  test('a start within ten minutes goes on with the stored records', async () => {
    await world.run('registry');
    world.breakRegistry();
    await world.restart();
    expect(world.eligibility.candidates()).toEqual([remote.relayId]);
    await world.admit(remote);
    world.clock.advance(600);
    await world.restart();
    expect(world.eligibility.candidates()).toEqual([]);
    await expect(world.admit(remote)).rejects.toMatchObject({ check: 'registry_unavailable' });
  });
});

describe('07 §B5: descriptors are fetched again over HTTPS', () => {
  beforeEach(() => world.run('registry'));

  test('soon after a handshake, then after six hours', async () => {
    await world.admit(remote);
    const next = (await world.run('descriptors')) as number;
    expect(remote.requests).toBe(1);
    expect(next).toBe(world.clock.now() + 6 * hour);
    world.clock.advance(6 * hour - 1);
    await world.run('descriptors');
    expect(remote.requests).toBe(1);
    world.clock.advance(1);
    await world.run('descriptors');
    expect(remote.requests).toBe(2);
  });

  test('at half of the remaining life, if that is sooner', async () => {
    remote.answer = (response) =>
      void remote
        .descriptor({ expires_at: world.clock.now() + 2 * hour })
        .then((descriptor) => response.end(JSON.stringify(descriptor)));
    await world.admit(remote);
    expect(await world.run('descriptors')).toBe(world.clock.now() + hour);
  });

  test('new addresses are those of the peer from then on', async () => {
    await world.admit(remote);
    const moved = [remote.endpoint, `/dns4/moved.example/tcp/1/p2p/${peerText(1)}`];
    remote.answer = (response) =>
      void remote
        .descriptor({ endpoints: moved })
        .then((descriptor) => response.end(JSON.stringify(descriptor)));
    await world.run('descriptors');
    expect(world.eligibility.find(remote.relayId)?.addresses).toMatchObject([
      { host: 'moved.example', port: 1 },
    ]);
    expect(world.drops).toEqual([]);
  });

  test('a relay that cannot be reached stays until its descriptor expires', async () => {
    await world.admit(remote);
    remote.answer = (response) => response.writeHead(503).end();
    const waits: number[] = [];
    for (let round = 0; round < 6; round += 1) {
      const next = (await world.run('descriptors')) as number;
      waits.push(next - world.clock.now());
      world.clock.advance(next - world.clock.now());
    }
    expect(waits).toEqual([30, 60, 120, 240, 480, 600]);
    expect(remote.requests).toBe(6);
    expect(eligible()).toEqual([remote.relayId]);
    world.clock.advance(24 * hour);
    expect(eligible()).toEqual([]);
    await world.run('descriptors');
    expect(reasons()).toEqual(['descriptor_expired']);
  });

  test.each<[string, (descriptor: string) => string]>([
    ['a broken signature', (text) => text.replace('/tcp/4201', '/tcp/4202')],
    ['no libp2p address', (text) => text.replace(/,"\/ip4[^"]*"/, '')],
    ['another relay', (text) => text.replace(/"0x[0-9a-f]{40}"/, `"0x${'0'.repeat(40)}"`)],
  ])('a relay whose endpoint serves %s leaves', async (_name, change) => {
    await world.admit(remote);
    const { descriptor } = await remote.handshake();
    remote.answer = (response) => response.end(change(descriptor));
    await world.run('descriptors');
    expect(reasons()).toEqual(['descriptor_invalid']);
  });

  test('what the endpoint serves replaces what a handshake said, not the other way', async () => {
    await world.admit(remote);
    await world.run('descriptors');
    const known = world.eligibility.find(remote.relayId)?.descriptor;
    const handshake = await remote.handshake({ expires_at: world.clock.now() + 2 * 86_400 });
    await world.eligibility.admit(handshake, {}, new AbortController().signal);
    expect(world.eligibility.find(remote.relayId)?.descriptor).toEqual(known);
    // But it is fetched again as soon as the pause allows.
    expect(await world.run('descriptors')).toBe(world.clock.now() + 300);
    world.clock.advance(300);
    await world.run('descriptors');
    expect(remote.requests).toBe(2);
  });

  test('at once from a new endpoint in the registry', async () => {
    await world.admit(remote);
    await world.run('descriptors');
    const other = await world.remote(9);
    other.answer = (response) =>
      void remote.descriptor().then((descriptor) => response.end(JSON.stringify(descriptor)));
    world.list({ ...remote.entry(), endpoint: other.endpoint });
    world.clock.advance(600);
    await world.run('registry');
    await world.run('descriptors');
    expect(other.requests).toBe(1);
    expect(eligible()).toEqual([remote.relayId]);
  });
});

describe('07 §B5: a relay with a new Peer ID', () => {
  beforeEach(() => world.run('registry'));

  test('comes in after the old one left, confirmed by its endpoint', async () => {
    const old = await world.admit(remote);
    remote.peerByte = 7;
    let atDrop: readonly unknown[] | undefined;
    using _listening = world.eligibility.onDrop(() => {
      atDrop = world.eligibility.all();
    });
    const renewed = await world.admit(remote);
    expect(world.drops).toEqual([{ peer: old, reason: 'peer_id_changed' }]);
    expect(atDrop).toEqual([]);
    expect(remote.requests).toBe(1);
    expect(world.eligibility.all()).toEqual([renewed]);
    expect(renewed.peerId).not.toEqual(old.peerId);
  });

  test('is refused if its endpoint has another Peer ID or does not answer', async () => {
    const old = await world.admit(remote);
    const { descriptor } = await remote.handshake();
    remote.peerByte = 7;
    remote.answer = (response) => response.end(descriptor);
    await expect(world.admit(remote)).rejects.toMatchObject({ check: 'peer_id_changed' });
    world.clock.advance(30);
    remote.answer = (response) => response.writeHead(500).end();
    await expect(world.admit(remote)).rejects.toMatchObject({ check: 'peer_id_changed' });
    expect(world.eligibility.all()).toEqual([old]);
    expect(world.drops).toEqual([]);
  });

  test('makes its endpoint be asked once in 30 seconds, however often it comes', async () => {
    await world.admit(remote);
    const { descriptor } = await remote.handshake();
    remote.peerByte = 7;
    remote.answer = (response) => response.end(descriptor);
    for (let round = 0; round < 4; round += 1) {
      await expect(world.admit(remote)).rejects.toMatchObject({ check: 'peer_id_changed' });
      world.clock.advance(10);
    }
    expect(remote.requests).toBe(2);
  });

  test('found by a refresh: the old one leaves, and does not come back', async () => {
    await world.admit(remote);
    const old = await remote.handshake();
    remote.peerByte = 7;
    await world.run('descriptors');
    expect(reasons()).toEqual(['peer_id_changed']);
    world.clock.advance(30);
    const again = world.eligibility.admit(old, {}, new AbortController().signal);
    await expect(again).rejects.toMatchObject({ check: 'peer_id_changed' });
    await world.restart();
    await world.run('registry');
    const later = world.eligibility.admit(old, {}, new AbortController().signal);
    await expect(later).rejects.toMatchObject({ check: 'peer_id_changed' });
    await world.admit(remote);
    expect(eligible()).toEqual([remote.relayId]);
  });

  test('two handshakes at once with two Peer IDs leave one peer', async () => {
    const one = await remote.handshake();
    remote.peerByte = 7;
    const other = await remote.handshake();
    const signal = new AbortController().signal;
    await Promise.allSettled([one, other].map((each) => world.eligibility.admit(each, {}, signal)));
    expect(eligible()).toEqual([remote.relayId]);
  });
});

describe('07 §B4: candidates to dial', () => {
  test('are the active relays of the registry, not this one', async () => {
    const second = await world.listed(2);
    world.list((await world.remote(3)).entry('suspended'));
    await world.run('registry');
    expect(world.eligibility.candidates()).toEqual([remote.relayId, second.relayId]);
  });

  test('are found by record and descriptor, fetched once, also after a start', async () => {
    const expected = { relayId: remote.relayId, addresses: [{ host: '127.0.0.1', port: 4201 }] };
    expect(await candidate()).toMatchObject(expected);
    expect(await candidate()).toMatchObject(expected);
    await world.restart();
    expect(await candidate()).toMatchObject(expected);
    expect(remote.requests).toBe(1);
    expect(eligible()).toEqual([]);
  });

  test('are fetched once by many at once', async () => {
    await Promise.all([1, 2, 3].map(() => candidate()));
    expect(remote.requests).toBe(1);
  });

  test('are read again after all their addresses failed, every 30 seconds at most', async () => {
    await candidate();
    await candidate({ isFresh: true });
    expect(remote.requests).toBe(1);
    world.clock.advance(30);
    await candidate({ isFresh: true });
    expect(remote.requests).toBe(2);
  });

  test('that were suspended meanwhile are none, if read again', async () => {
    await candidate();
    world.list(remote.entry('suspended'));
    expect(await candidate()).toMatchObject({ relayId: remote.relayId });
    await expect(candidate({ isFresh: true })).rejects.toMatchObject({ check: 'not_active' });
  });

  test('are fetched again when their descriptor has expired or the clock was set back', async () => {
    await candidate();
    world.clock.advance(24 * hour);
    const renewed = await candidate();
    expect(remote.requests).toBe(2);
    expect(renewed.descriptor.expires_at).toBe(world.clock.now() + 24 * hour);
    world.clock.advance(-hour);
    await candidate({ isFresh: true });
    expect(remote.requests).toBe(3);
  });

  test('that fail are asked for again after a pause', async () => {
    remote.answer = (response) => response.writeHead(500).end();
    const failed = { check: 'descriptor_unavailable' };
    await expect(candidate()).rejects.toMatchObject(failed);
    await expect(candidate()).rejects.toMatchObject(failed);
    expect(remote.requests).toBe(1);
    remote.answer = undefined;
    world.clock.advance(30);
    expect(await candidate()).toMatchObject({ relayId: remote.relayId });
  });

  test('that claim the Peer ID of an admitted relay are none', async () => {
    await world.admit(remote);
    const second = await world.listed(2);
    second.peerByte = remote.peerByte;
    await expect(world.eligibility.candidate(second.relayId)).rejects.toMatchObject({
      check: 'peer_id_taken',
    });
    expect(eligible()).toEqual([remote.relayId]);
  });

  test('are limited in how many are fetched at once', async () => {
    await using small = await AdmissionWorld.start({ federationDescriptorFetches: 1 });
    const [first, second] = [await small.listed(1), await small.listed(2)];
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<void>();
    first.answer = (response) => {
      asked.resolve();
      void answer.promise.then(() => response.writeHead(500).end());
    };
    const fetching = small.eligibility.candidate(first.relayId);
    await asked.promise;
    await expect(small.eligibility.candidate(second.relayId)).rejects.toMatchObject({
      check: 'descriptor_unavailable',
    });
    answer.resolve();
    await expect(fetching).rejects.toMatchObject({ check: 'descriptor_unavailable' });
    expect(await small.eligibility.candidate(second.relayId)).toMatchObject({
      relayId: second.relayId,
    });
  });

  test('with a private endpoint are none without federation.allowPrivate', async () => {
    await using strict = await AdmissionWorld.start({}, { allowPrivate: false });
    const local = await strict.listed(1);
    for (const host of ['127.0.0.1', 'localhost', '[::ffff:127.0.0.1]']) {
      strict.list({ ...local.entry(), endpoint: local.endpoint.replace('127.0.0.1', host) });
      strict.clock.advance(600);
      await expect(strict.eligibility.candidate(local.relayId)).rejects.toMatchObject({
        check: 'descriptor_unavailable',
        cause: { name: 'AddressRefused' },
      });
    }
    expect(local.requests).toBe(0);
  });

  test('end with the relay: a fetch under way is left', async () => {
    const asked = Promise.withResolvers<void>();
    remote.answer = () => asked.resolve();
    const fetching = candidate();
    const failed = expect(fetching).rejects.toMatchObject({ check: 'descriptor_unavailable' });
    await asked.promise;
    await world.restart();
    await failed;
  });
});
