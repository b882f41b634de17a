import { randomBytes } from 'node:crypto';
import { ed25519Identity } from '@posthouse/peer';
import type { FinalRoute } from '@posthouse/protocol';
import { compareDistance, deriveRouteKey, dhtDistance } from '@posthouse/protocol/federation';
import { nodePrimitives } from '@posthouse/protocol/node';
import { assertConforms, assertEqual } from '../../assert.ts';
import type { TestContext } from '../../fixtures/test-context.ts';
import { HomeAccount } from '../../seat/home-account.ts';
import type { RelaySeat, SeatOptions } from '../../seat/relay-seat.ts';
import { byDistance } from './nearest.ts';
import type { RouteFixture } from './route-faults.ts';

/** A lookup by the relay under test: it has never seen the account. */
export interface LookupFixture extends RouteFixture {
  /** Another relay that the relay under test knows, and is connected with. */
  readonly other: RelaySeat;
}

/** The account's home is a connected relay, which does not return the route of itself. */
export async function openLookup(context: TestContext): Promise<LookupFixture> {
  const [seat, other] = [await context.seat(), await context.seat()];
  await seat.connect();
  await other.connect();
  return { context, seat, other, home: await HomeAccount.create(context.network, seat) };
}

/**
 * A lookup in a network of so many relays that not all are asked. The account's home, and the other
 * relay, are the nearest to the key.
 */
export async function openCrowd(context: TestContext): Promise<LookupFixture> {
  const crowd = await context.crowd();
  const account = context.account();
  const key = deriveRouteKey(context.network, account.id);
  const [seat, other] = byDistance(key, crowd) as [RelaySeat, RelaySeat];
  return { context, seat, other, home: await HomeAccount.create(context.network, seat, account) };
}

/**
 * Makes a relay that the relay under test cannot reach by its registry, as its descriptor is not to
 * be had over HTTPS: it has to learn the address from another relay, and to authenticate this one by
 * handshake alone (07 §B4). It is nearer to the key of the account than the home relay is.
 */
export async function hiddenSeat(
  { context, seat, home }: LookupFixture,
  options: SeatOptions = {},
): Promise<RelaySeat> {
  const key = deriveRouteKey(context.network, home.id);
  const distance = (peer: Uint8Array) => dhtDistance(nodePrimitives, key, peer);
  const limit = distance(seat.identity.peerId);
  for (;;) {
    const identity = ed25519Identity(randomBytes(32));
    if (compareDistance(distance(identity.peerId), limit) > 0) continue;
    return await context.seat({ isHidden: true, identity, ...options });
  }
}

/** Resolves the account's route as a client without a session, and asserts which one is found. */
export async function expectResolved(
  { context, home }: Pick<LookupFixture, 'context' | 'home'>,
  route: FinalRoute,
  what = 'the route of the account',
): Promise<void> {
  const params = { account: home.id };
  const found = await context.expectOk(context.https(), 'account.route.resolve', params);
  assertEqual(found, route, what);
}

/** Asserts that a client gets no route of the account. */
export async function expectUnresolved(
  { context, home }: Pick<LookupFixture, 'context' | 'home'>,
  code: 'not_found' | 'invalid_state',
): Promise<void> {
  const call = { method: 'account.route.resolve', params: { account: home.id } };
  await context.expectError(context.https(), call, code);
}

/** Asserts that a relay got no request about the account. */
export function expectNotAsked({ dht }: RelaySeat, { id }: HomeAccount, what: string): void {
  const asked = [0, 1, 4] as const;
  const count = asked.reduce<number>((sum, type) => sum + dht.requests(type, id).length, 0);
  assertConforms(count === 0, `${what} gets no request, not ${count}`);
}
