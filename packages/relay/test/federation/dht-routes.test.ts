import { expect, test } from 'vitest';
import { CallTurns } from '../../src/dispatch/call-turns.ts';
import { LongWork } from '../../src/dispatch/long-work.ts';
import { KadDecoder } from '../../src/federation/dht/decoder.ts';
import { DhtRoutes } from '../../src/federation/dht/routes.ts';
import { defaultLimits, type RelayLimits } from '../../src/limits.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { ManualClock } from '../support/clock.ts';
import { network } from '../support/modules.ts';

const account = 'neo:860833102:NYyxNvpALEX66F1QrykS5ZGktqRMxPb5MT';
const nothing = () => ({ [Symbol.dispose]: () => {} });
const idOf = (digit: number) => `0x${`${digit}`.repeat(40)}`;

/** Routes over relays that answer "no record", or nothing; records the questions. */
function routesOver(
  count: number,
  limits: Partial<RelayLimits> = {},
  { isRegistryRead = true, failing = 0 } = {},
) {
  const clock = new ManualClock();
  const metrics = new Metrics();
  const asked: string[] = [];
  const silent = new Set<string>();
  const relays = Array.from({ length: count }, (_, index) => idOf(index + 1));
  const openStream = async (relayId: string, _: string, signal: AbortSignal) => {
    asked.push(relayId);
    let request: Uint8Array;
    const reset = Promise.withResolvers<never>();
    reset.promise.catch(() => {});
    signal.addEventListener('abort', () => reset.reject(signal.reason));
    const stream = {
      writeFrame: async (frame: Uint8Array) => {
        request = frame;
      },
      readFrame: async () => (silent.has(relayId) ? await reset.promise : request),
      end: () => {},
      reset: () => {},
    };
    return { stream, connection: {} };
  };
  const routes = new DhtRoutes(
    {
      ...{ network, clock, limits: { ...defaultLimits, ...limits }, metrics, log: {} },
      identity: { peerId: '12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA' },
    } as never,
    {
      relays: () => relays,
      isRegistryRead: () => isRegistryRead,
      connections: {
        openStream,
        openInstead: async () => undefined,
      },
      health: {
        pausedUntil: () => undefined,
        failingFor: () => failing,
        succeeded: () => {},
      },
      faults: { add: () => {} },
      decoder: new KadDecoder({ turns: new CallTurns(clock), longWork: new LongWork() }),
      eligibility: { all: () => [], find: () => undefined, onEnter: nothing, onDrop: nothing },
      stopping: new AbortController().signal,
    } as never,
  );
  return { routes, clock, metrics, asked, silent };
}

test('07 §B12: a relay that does not answer delays a lookup by three seconds, and then none', async () => {
  const { routes, clock, metrics, asked, silent } = routesOver(3);
  silent.add(idOf(2));
  const found = routes.resolveRemote(account);
  await expect
    .poll(() => metrics.value('dht_requests', { type: 'get_value', outcome: 'ok' }))
    .toBe(2);
  clock.advance(3);
  expect(await found).toEqual({
    ...{ routes: [], unverified: [], missed: [idOf(2)], claimed: [] },
    nearest: [idOf(1), idOf(3)],
  });
  expect(asked).toEqual([idOf(1), idOf(2), idOf(3)]);
  expect(await routes.resolveRemote(account)).toMatchObject({ missed: [idOf(2)] });
  expect(asked.slice(3)).toEqual([idOf(1), idOf(3)]);
});

test('07 §B12: a lookup ends after ten seconds with the answers that came', async () => {
  const { routes, clock, asked, silent } = routesOver(3, { dhtQuestionTimeout: 60_000 });
  silent.add(idOf(2));
  const found = routes.resolveRemote(account);
  await expect.poll(() => asked.length).toBe(3);
  let isOver = false;
  void found.then(() => {
    isOver = true;
  });
  clock.advance(9);
  for (let turn = 0; turn < 20; turn += 1) await new Promise((go) => setImmediate(go));
  expect(isOver).toBe(false);
  clock.advance(1);
  expect(await found).toMatchObject({ routes: [], missed: [idOf(2)] });
});

test.each([
  [0, 0, { isAlone: true, areAllAway: true }],
  [2, defaultLimits.dhtReplicaGrace - 1, { isAlone: false, areAllAway: false }],
  [2, defaultLimits.dhtReplicaGrace, { isAlone: false, areAllAway: true }],
])(
  '07 §B12: a registry that lists %s others, failing for %s s, tells whether an answer can come',
  (count, failing, expected) => {
    expect(routesOver(count, {}, { failing }).routes).toMatchObject(expected);
    // Before the registry was read there may be relays that are not known.
    const { routes } = routesOver(count, {}, { failing, isRegistryRead: false });
    expect(routes).toMatchObject({ isAlone: false, areAllAway: false });
  },
);
