import { hex, utf8 } from '@posthouse/protocol';
import { type KadCandidate, peerIdOfKey } from '@posthouse/protocol/federation';
import { expect, test } from 'vitest';
import { AddressFilter } from '../../src/federation/address-filter.ts';
import { PeerConnections } from '../../src/federation/connections.ts';
import { DhtCandidates } from '../../src/federation/dht/candidates.ts';
import { defaultLimits, type RelayLimits } from '../../src/limits.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { ManualClock } from '../support/clock.ts';
import { network } from '../support/modules.ts';

const { primitives } = network;
const never = new AbortController().signal;

const candidateOf = (label: string, host = '198.51.100.7'): KadCandidate => {
  const data = primitives.sha256(utf8(label));
  const peerId = peerIdOfKey(primitives, { type: 'ed25519', data });
  return { peerId, addresses: [{ family: 'ip4', host, port: 4201 }] };
};

/** Candidates over connections whose dials wait for the test. */
function candidatesWith(limits: Partial<RelayLimits> = {}, options = { allowPrivate: true }) {
  const clock = new ManualClock();
  const metrics = new Metrics();
  const eligible = new Map<string, unknown>();
  const context = {
    ...{ clock, metrics, network, log: { debug: () => {} } },
    limits: { ...defaultLimits, ...limits },
  };
  const dialled: { host: string; peerId: Uint8Array }[] = [];
  const answers: ((peer: unknown) => void)[] = [];
  const connections = new PeerConnections(
    context as never,
    {
      ...{ eligibility: { onDrop: () => {} }, filter: new AddressFilter(options) },
      ...{ health: { failed: () => {} }, stopping: never },
    } as never,
  );
  connections.use({
    dial: async (address: { host: string; peerId: Uint8Array; signal: AbortSignal }) => {
      dialled.push(address);
      const { promise, resolve, reject } = Promise.withResolvers<unknown>();
      address.signal.addEventListener('abort', () => reject(address.signal.reason));
      answers.push(resolve);
      const peer = await promise;
      if (peer instanceof Error) throw peer;
      const stream = { end: () => {}, reset: () => {}, readFrame: async () => undefined };
      return { peer, openStream: async () => stream, close: () => {} };
    },
  } as never);
  const findPeer = (peerId: Uint8Array) => eligible.get(hex(peerId));
  const parts = { eligibility: { findPeer }, dials: connections.dials, stopping: never };
  const candidates = new DhtCandidates(context as never, parts as never);
  return { candidates, clock, metrics, eligible, dialled, answers };
}

const settled = () => new Promise((done) => setImmediate(done));

test('07 §B4: a candidate is dialled by its Peer ID and address alone', async () => {
  const { candidates, dialled, answers } = candidatesWith();
  const candidate = candidateOf('one');
  const found = candidates.find(candidate, never);
  await expect.poll(() => dialled.length).toBe(1);
  expect(dialled[0]).toMatchObject({ host: '198.51.100.7', port: 4201, peerId: candidate.peerId });
  const peer = { relayId: 'the one that its handshake proved' };
  answers[0]?.(peer);
  expect(await found).toBe(peer);
});

test('07 §B4: an eligible relay is not dialled, whatever addresses an answer names', async () => {
  const { candidates, dialled, eligible } = candidatesWith();
  const candidate = candidateOf('one');
  const peer = { relayId: 'one' };
  eligible.set(hex(candidate.peerId), peer);
  expect(await candidates.find(candidate, never)).toBe(peer);
  expect(await candidates.find({ ...candidateOf('two'), addresses: [] }, never)).toBeUndefined();
  expect(dialled).toEqual([]);
});

test.each(['127.0.0.1', '10.0.0.1', '169.254.169.254', '0.0.0.0'])(
  '07 §B4: a candidate at %s is not dialled',
  async (host) => {
    const { candidates, dialled } = candidatesWith({}, { allowPrivate: false });
    expect(await candidates.find(candidateOf('one', host), never)).toBeUndefined();
    expect(dialled).toEqual([]);
  },
);

test('07 §B6: a candidate that was not reached is not dialled again for a minute', async () => {
  const { candidates, clock, dialled, answers } = candidatesWith();
  const find = async () => {
    const found = candidates.find(candidateOf('one'), never);
    await settled();
    answers.pop()?.(new Error('another peer is there'));
    return await found;
  };
  expect(await find()).toBeUndefined();
  expect(await find()).toBeUndefined();
  expect(dialled).toHaveLength(1);
  clock.advance(defaultLimits.dhtPause);
  expect(await find()).toBeUndefined();
  expect(dialled).toHaveLength(2);
});

test('no more peers are dialled at once than the limit allows, and no more in a second', async () => {
  const limits = { dhtCandidateDials: 2, dhtCandidateRate: 1, dhtCandidateBurst: 3 };
  const { candidates, clock, metrics, dialled, answers } = candidatesWith(limits);
  const find = (label: string) => candidates.find(candidateOf(label), never);
  const first = [find('one'), find('two')];
  expect(await find('three')).toBeUndefined();
  // The same peer again waits for the dial that is under way.
  const again = find('one');
  await expect.poll(() => dialled.length).toBe(2);
  for (const answer of answers) answer(new Error('nothing is there'));
  expect(await Promise.all([...first, again])).toEqual([undefined, undefined, undefined]);
  const fourth = find('four');
  await expect.poll(() => dialled.length).toBe(3);
  expect(await find('five')).toBeUndefined();
  answers[2]?.({ relayId: 'four' });
  expect(await fourth).toMatchObject({ relayId: 'four' });
  clock.advance(1);
  void find('six');
  await expect.poll(() => dialled.length).toBe(4);
  expect(metrics.value('dht_candidates', { outcome: 'limited' })).toBe(2);
});

test('07 §B7: a candidate that hangs has three seconds', async () => {
  const { candidates, clock, dialled } = candidatesWith();
  const found = candidates.find(candidateOf('one'), never);
  await expect.poll(() => dialled.length).toBe(1);
  clock.advance(3);
  expect(await found).toBeUndefined();
});
