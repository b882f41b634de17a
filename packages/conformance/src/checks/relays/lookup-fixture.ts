import type { FinalRoute } from '@posthouse/protocol';
import { assertConforms, assertEqual } from '../../assert.ts';
import type { TestContext } from '../../fixtures/test-context.ts';
import { HomeAccount } from '../../seat/home-account.ts';
import type { RelaySeat, SeatOptions } from '../../seat/relay-seat.ts';
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
 * Makes relays that the relay under test cannot reach by its registry, as their descriptors are not
 * to be had over HTTPS: it has to learn their addresses from others, and to authenticate them by
 * handshake alone (07 §B4).
 */
export async function hiddenSeat(
  context: TestContext,
  options: SeatOptions = {},
): Promise<RelaySeat> {
  return await context.seat({ isHidden: true, ...options });
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
