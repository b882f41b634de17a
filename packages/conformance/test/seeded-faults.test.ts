/**
 * Shows that the kit, as another relay, finds faults: each is switched on alone in a real relay.
 * `kit.test.ts` shows that the checks pass without them.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checks, runCheck } from '../src/index.ts';
import { dhtFaults, namingFaults } from './faults/dht.ts';
import { candidateFaults, lookupFaults } from './faults/lookups.ts';
import { peerFaults } from './faults/peers.ts';
import { distanceFaults, publicationFaults } from './faults/publication.ts';
import { rpcFaults } from './faults/rpc.ts';
import { sourceFaults } from './faults/source.ts';
import { openStreamsToFaults } from './faults/streams.ts';
import { startRelayWithSeats } from './relays.ts';

const seededFaults = [
  ...[...peerFaults, ...dhtFaults, ...rpcFaults, ...sourceFaults],
  ...[...lookupFaults, ...publicationFaults],
  // Their checks make the network large, in which others would fail for another reason.
  ...[...namingFaults, ...distanceFaults, ...candidateFaults],
];

const parts = new AsyncDisposableStack();
let tested: Awaited<ReturnType<typeof startRelayWithSeats>>;

const startShortPeriods = () => startRelayWithSeats({ messageRetention: 3, ownRouteCheck: 2 });

beforeAll(async () => {
  parts.use(openStreamsToFaults());
  tested = parts.use(await startRelayWithSeats());
});

afterAll(async () => {
  await parts.disposeAsync();
});

for (const { fault, check: id, seed } of seededFaults) {
  test(`07 §B15, §C10: the kit finds a relay that ${fault} [${id}]`, async () => {
    const check = checks.find((one) => one.id === id);
    if (check === undefined) throw new Error(`there is no check ${id}`);
    await using short = check.waitsForPeriod === true ? await startShortPeriods() : undefined;
    const { relay, target } = short ?? tested;
    using _ = seed(relay);
    const { outcome, reason } = await runCheck(target, check, 'relay');
    expect(reason ?? outcome).toMatch(/^expected: /);
  });
}
