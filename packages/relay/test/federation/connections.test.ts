import { expect, test } from 'vitest';
import { PeerConnections } from '../../src/federation/connections.ts';
import { peersJob } from '../../src/federation/peers-job.ts';
import { defaultLimits } from '../../src/limits.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { ManualClock } from '../support/clock.ts';
import { network } from '../support/modules.ts';

const honest = `0x${'11'.repeat(20)}`;
const hostile = `0x${'22'.repeat(20)}`;
const peerId = Uint8Array.of(1, 2, 3);

/** The peer whose descriptor a relay has; both bind the Peer ID of the honest relay. */
const peerOf = (relayId: string) => ({
  ...{ relayId, peerId, descriptor: { endpoints: [] } },
  addresses: [{ family: 'ip4', host: '127.0.0.1', port: relayId === honest ? 1 : 2, peerId: '' }],
});

/** A connection that agrees on each protocol. */
const connectionWith = (relayId: string) => ({
  peer: peerOf(relayId),
  openStream: async () => ({ end: () => {}, reset: () => {}, readFrame: async () => undefined }),
});

test('07 §B5: a relay that claims the Peer ID of another does not keep it from being dialled', async () => {
  const clock = new ManualClock();
  const expected: unknown[] = [];
  const failed: string[] = [];
  const hanging = Promise.withResolvers<never>();
  const hostileDialled = Promise.withResolvers<void>();
  const stopping = new AbortController();
  const connections = new PeerConnections(
    { clock, limits: defaultLimits, metrics: new Metrics(), network, log: {} } as never,
    {
      eligibility: {
        onDrop: () => {},
        candidate: async (relayId: string) => peerOf(relayId),
        admit: async (_: unknown, given: { readonly relayId?: string }) => {
          expected.push(given);
          // As admission does: the handshake shows the honest relay's descriptor.
          if (given.relayId === hostile) throw new Error('not the relay that was dialled');
          return peerOf(honest);
        },
      },
      filter: { resolve: async ({ host }: { host: string }) => [host] },
      health: { failed: (relayId: string) => failed.push(relayId) },
      stopping: stopping.signal,
    } as never,
  );
  connections.use({
    dial: async ({ port }: { port: number }) => {
      if (port === 2) {
        hostileDialled.resolve();
        return await hanging.promise;
      }
      await hostileDialled.promise;
      const remote = { peerId, descriptor: '', address: '127.0.0.1', direction: 'outbound' };
      const { relayId } = await connections.admit(remote as never, stopping.signal);
      return connectionWith(relayId);
    },
  } as never);
  const dialled = connections.dials.dial(honest, stopping.signal);
  const other = connections.dials
    .dial(hostile, stopping.signal)
    .catch((error: Error) => error.message);
  expect((await dialled).peer.relayId).toBe(honest);
  expect(failed).toEqual([]);
  expect(expected).toEqual([{ peerId }]);
  stopping.abort(new Error('the test ends'));
  expect(await other).toBe('the test ends');
});

test('07 §B5: a relay that the registry does not list as active dials no other one', async () => {
  const dialled: string[] = [];
  let isActive = false;
  const never = new AbortController().signal;
  const job = peersJob({
    eligibility: { candidates: () => [honest] },
    connections: {
      ...{ connected: 0, isConnected: () => false, retireUnused: () => {} },
      dials: { dial: async (relayId: string) => dialled.push(relayId) },
    },
    health: {
      ...{ adopt: async () => {}, forgetUnlisted: () => {} },
      ...{ pausedUntil: () => undefined, nextRetry: () => undefined },
    },
    stopping: never,
  } as never);
  const registryStatus = { isActive: async () => isActive };
  const context = {
    ...{ clock: new ManualClock(), limits: defaultLimits, registryStatus },
    identity: { relayId: hostile },
  } as never;
  const run = () => job.run(context, never, () => ({ [Symbol.dispose]: () => {} }));
  await run();
  expect(dialled).toEqual([]);
  isActive = true;
  await run();
  expect(dialled).toEqual([honest]);
});

test('07 §B5: a dial that fails pauses the relay, unless it has connected meanwhile', async () => {
  const never = new AbortController().signal;
  const failed: string[] = [];
  const dials = [Promise.withResolvers<never>(), Promise.withResolvers<never>()];
  const connections = new PeerConnections(
    {
      ...{ clock: new ManualClock(), limits: defaultLimits, metrics: new Metrics(), network },
      ...{ jobs: { wake: () => {} }, log: { debug: () => {} } },
      blocks: { hasAddress: () => false },
    } as never,
    {
      eligibility: {
        onDrop: () => {},
        find: peerOf,
        candidate: async (relayId: string) => peerOf(relayId),
      },
      filter: { resolve: async ({ host }: { host: string }) => [host] },
      health: { failed: (relayId: string) => failed.push(relayId), succeeded: () => {} },
      stopping: never,
    } as never,
  );
  connections.use({ dial: ({ port }: { port: number }) => dials[port - 1]?.promise } as never);
  const [toHonest, toHostile] = [honest, hostile].map((id) => connections.dials.dial(id, never));
  connections.opened({
    ...connectionWith(honest),
    closed: new Promise(() => {}),
    remote: { address: '127.0.0.1', direction: 'inbound' },
  } as never);
  for (const dial of dials) dial.reject(new Error('refused'));
  await expect(toHonest).rejects.toThrow('refused');
  await expect(toHostile).rejects.toThrow('refused');
  expect(failed).toEqual([hostile]);
});

test('07 §B5: of a relay with many addresses, 8 are dialled, 2 at once', async () => {
  const never = new AbortController().signal;
  const [address] = peerOf(honest).addresses;
  const peer = { ...peerOf(honest), addresses: Array.from({ length: 12 }, () => address) };
  const connections = new PeerConnections(
    { clock: new ManualClock(), limits: defaultLimits, metrics: new Metrics(), network } as never,
    {
      eligibility: { onDrop: () => {}, candidate: async () => peer },
      filter: { resolve: async ({ host }: { host: string }) => [host] },
      health: { failed: () => {} },
      stopping: never,
    } as never,
  );
  const seen = { dials: 0, underWay: 0, most: 0 };
  connections.use({
    dial: async () => {
      seen.dials += 1;
      seen.underWay += 1;
      seen.most = Math.max(seen.most, seen.underWay);
      await new Promise((go) => setImmediate(go));
      seen.underWay -= 1;
      throw new Error('refused');
    },
  } as never);
  await expect(connections.dials.dial(honest, never)).rejects.toThrow('refused');
  expect(seen).toEqual({ dials: 8, underWay: 0, most: 2 });
});
