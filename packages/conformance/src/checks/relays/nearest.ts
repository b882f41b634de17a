/** Which relays are near to a key (07 §B8). */
import { compareDistance, dhtDistance } from '@posthouse/protocol/federation';
import { nodePrimitives } from '@posthouse/protocol/node';
import { assertConforms, assertEqual } from '../../assert.ts';
import type { RelaySeat } from '../../seat/relay-seat.ts';

/** Sorts relays by their distance to a key, nearest first: SHA-256 of both, compared by XOR. */
export function byDistance(key: Uint8Array, relays: readonly RelaySeat[]): RelaySeat[] {
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
