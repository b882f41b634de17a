/** A network of more relays than a relay names at once, or sends a route to (07 §B8). */
import { compareDistance, dhtDistance } from '@posthouse/protocol/federation';
import { nodePrimitives } from '@posthouse/protocol/node';
import { assertConforms, assertEqual } from '../../assert.ts';
import type { TestContext } from '../../fixtures/test-context.ts';
import type { RelaySeat } from '../../seat/relay-seat.ts';

/** More than a bucket of 20 has, so that a relay has to choose. */
const crowd = 24;

/** Makes relays that are all connected with the relay under test. */
export async function connectedCrowd(context: TestContext): Promise<RelaySeat[]> {
  const relays: RelaySeat[] = [];
  for (let count = 0; count < crowd; count += 1) relays.push(await context.seat());
  await Promise.all(relays.map((relay) => relay.connect()));
  return relays;
}

/** Sorts relays by their distance to a key, nearest first: SHA-256 of both, compared by XOR. */
function byDistance(key: Uint8Array, relays: readonly RelaySeat[]): RelaySeat[] {
  return relays
    .map((relay) => ({ relay, distance: dhtDistance(nodePrimitives, key, relay.identity.peerId) }))
    .sort((a, b) => compareDistance(a.distance, b.distance))
    .map(({ relay }) => relay);
}

/** Asserts that no relay which is not chosen is nearer to a key than one that is. */
export function expectNearestFirst(
  key: Uint8Array,
  relays: readonly RelaySeat[],
  isChosen: (relay: RelaySeat) => boolean,
): void {
  const sorted = byDistance(key, relays).map(isChosen);
  const chosen = sorted.filter(Boolean).length;
  assertConforms(chosen > 0, 'relays near a key are chosen');
  const wrong = sorted.slice(0, chosen).filter((one) => !one).length;
  assertEqual(
    wrong,
    0,
    `relays that are nearer than one of the ${chosen} chosen, but are not chosen`,
  );
}
