/** Relays whose registry is the contract on the chain: whole relays, real nodes' sockets. */
import { expect, test, vi } from 'vitest';
import { Chain } from '../support/chain.ts';
import { patience } from '../support/served-network.ts';
import type { ServedRelay } from '../support/served-relay.ts';

const value = ({ server }: ServedRelay, ...args: Parameters<typeof server.context.metrics.value>) =>
  server.context.metrics.value(...args);
const connected = (relay: ServedRelay) => value(relay, 'peers', { state: 'connected' });

/** Moves the relays' time on, so that they read the registry again. */
function later(relays: readonly ServedRelay[], seconds = 721): void {
  for (const { clock, server } of relays) {
    clock.advance(seconds);
    server.wakeJobs();
  }
}

async function pair(chain: Chain): Promise<[ServedRelay, ServedRelay]> {
  const relays: [ServedRelay, ServedRelay] = [await chain.relay(), await chain.relay()];
  for (const relay of relays) chain.register(relay);
  later(relays);
  await vi.waitFor(() => expect(relays.map(connected)).toEqual([1, 1]), patience);
  return relays;
}

test('07 §A6, §B4: relays that the chain lists find each other, and questions pass', async () => {
  await using chain = await Chain.start();
  const [a, b] = await pair(chain);
  const ann = await a.register('ann');
  await ann.publishProfile({ nickname: 'Ann' });
  const call = b.server.context.relayClient.call(a.relayId, 'profile.resolve', {
    account: ann.account,
  });
  expect(await call).toMatchObject({ kind: 'result', value: { profile: { nickname: 'Ann' } } });
  expect(chain.node.sessions.size).toBe(0);
});

test('07 §B5: a relay that is suspended on the chain is dropped, and comes back restored', async () => {
  await using chain = await Chain.start();
  const [a, b] = await pair(chain);
  chain.govern(b, 'suspendRelay');
  later([a]);
  await vi.waitFor(() => {
    expect(value(a, 'peers_dropped', { reason: 'not_active' })).toBe(1);
    expect(connected(a)).toBe(0);
  }, patience);
  chain.govern(b, 'restoreRelay');
  chain.change(b, 'setRelayEnabled', true);
  // Either may try before the other has read the registry, and then tries again later.
  await vi.waitFor(
    () => {
      if (connected(a) === 0) later([a, b]);
      expect(connected(a)).toBe(1);
    },
    { ...patience, interval: 500 },
  );
});

test('07 §B5: while the nodes are away, known relays stay and a new one is refused', async () => {
  await using chain = await Chain.start(2);
  const [a, b] = await pair(chain);
  for (const node of chain.nodes) node.fate = () => 'close';
  const c = await chain.relay();
  chain.register(c);
  later([a, b]);
  await vi.waitFor(() => expect(value(a, 'registry_lost')).toBe(1), patience);
  const asked = c.server.context.relayClient.call(a.relayId, 'profile.resolve', {
    account: 'neo:0:0x00',
  });
  expect(await asked).toMatchObject({ kind: expect.stringMatching(/^un/) });
  expect([connected(a), connected(b), connected(c)]).toEqual([1, 1, 0]);
  for (const node of chain.nodes) node.fate = () => 'answer';
  later([a, b, c]);
  await vi.waitFor(() => expect([a, b, c].map(connected)).toEqual([2, 2, 2]), patience);
  expect(value(a, 'registry_restored')).toBe(1);
});

test('07 §A6: a relay starts while every node is away or hangs', async () => {
  await using chain = await Chain.start(2);
  chain.node.fate = () => 'hang';
  (chain.nodes[1] as typeof chain.node).fate = () => 'status';
  const relay = await chain.relay();
  const { text } = await relay.http().call('relay.descriptor', {});
  expect(JSON.parse(text)).toMatchObject({ relay_id: relay.relayId });
});

test('07 §A7: at the start, a record that is missing or has another address is a warning', async () => {
  await using chain = await Chain.start();
  const relay = await chain.relay();
  await vi.waitFor(() => expect(value(relay, 'not_registered')).toBe(1), patience);
  chain.register(relay, 'https://other.example/svc/v1');
  await relay.restart();
  await vi.waitFor(() => expect(value(relay, 'other_endpoint_registered')).toBe(1), patience);
});

test('two nodes that differ: the relay is not admitted, and is asked for again', async () => {
  await using chain = await Chain.start(2);
  const nodes = chain.nodes.map(({ url }) => url);
  const a = await chain.relay({ registry: { nodes, agree: 2 } });
  const b = await chain.relay({ registry: { nodes, agree: 2 } });
  for (const relay of [a, b]) chain.register(relay);
  const second = chain.nodes[1] as typeof chain.node;
  const suspended = Buffer.from('suspended').toString('base64');
  const active = Buffer.from('active').toString('base64');
  second.tamper = (method, result) =>
    method === 'getRelay' ? JSON.parse(JSON.stringify(result).replace(active, suspended)) : result;
  later([a, b]);
  await vi.waitFor(() => expect(value(a, 'registry_nodes_differ')).toBeGreaterThan(0), patience);
  expect([a, b].map(connected)).toEqual([0, 0]);
  second.tamper = (_, result) => result;
  later([a, b]);
  await vi.waitFor(() => expect([a, b].map(connected)).toEqual([1, 1]), patience);
});
