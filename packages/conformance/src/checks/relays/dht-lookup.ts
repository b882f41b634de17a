/** Lookups of routes at other relays: what their answers are worth (07 §B7, §B10 to §B12). */
import { kadTypes } from '@posthouse/protocol/federation';
import { canonicalJson } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../../assert.ts';
import { unixSeconds } from '../../fixtures/account.ts';
import { relayTime, untilRelayTime } from '../../fixtures/relay-info.ts';
import { HomeAccount, routeTo } from '../../seat/home-account.ts';
import { relayChecksOf, requireRegistryRefresh } from './common.ts';
import { expectResolved, expectUnresolved, openLookup } from './lookup-fixture.ts';
import { another, withOtherSignature } from './route-faults.ts';

const lookups = relayChecksOf('dht.lookup');

const { getValue } = kadTypes;

lookups.check(
  'finds',
  { source: '07 §B7, §B12', title: 'finds the route of an account that it has never seen' },
  async (context) => {
    const fixture = await openLookup(context);
    const { seat, home } = fixture;
    seat.dht.hold(home.route);
    await expectResolved(fixture, home.route);
    const [asked] = seat.dht.requests(getValue, home.id);
    assertConforms(asked !== undefined, 'the relay asks with GET_VALUE and the key of the account');
    assertEqual(seat.dht.malformed.length, 0, 'malformed requests of the relay');
  },
);

lookups.check(
  'past-an-answer-without-record',
  { source: '07 §B7', title: 'asks on after an answer without a record' },
  async (context) => {
    // Each of two accounts is found at one relay of the two, whichever is nearer.
    const fixture = await openLookup(context);
    const { seat, other, home } = fixture;
    const second = await HomeAccount.create(context.network, seat);
    seat.dht.hold(home.route);
    other.dht.hold(second.route);
    await expectResolved(fixture, home.route);
    await expectResolved({ context, home: second }, second.route);
  },
);

lookups.check(
  'highest',
  { source: '07 §B11', title: 'selects the highest revision of several answers' },
  async (context) => {
    const fixture = await openLookup(context);
    const { seat, other, home } = fixture;
    const higher = await another(fixture);
    seat.dht.hold(home.route);
    other.dht.hold(higher);
    await expectResolved(fixture, higher);
    // The other way round.
    const second = await HomeAccount.create(context.network, seat);
    const secondHigher = await routeTo(second.account, seat, {
      revision: second.route.revision + 1,
    });
    seat.dht.hold(secondHigher);
    other.dht.hold(second.route);
    await expectResolved({ context, home: second }, secondHigher);
  },
);

lookups.check(
  'lower-than-known',
  { source: '07 §B11', title: 'returns no route below the highest revision that it verified' },
  async (context) => {
    const fixture = await openLookup(context);
    const { seat, other, home } = fixture;
    const higher = await another(fixture);
    const connection = await seat.dial();
    await connection.storeRoute(higher);
    for (const one of [seat, other]) one.dht.hold(home.route);
    await expectResolved(fixture, higher);
    assertEqual(await connection.getRoute(home.id), canonicalJson(higher), 'the stored route');
  },
);

lookups.check(
  'conflict',
  { source: '07 §B11', title: 'two relays with two contents of one revision leave no route' },
  async (context) => {
    const fixture = await openLookup(context);
    const { seat, other, home } = fixture;
    const { revision } = home.route;
    seat.dht.hold(home.route);
    const content = await another(fixture, { revision, expiresAt: unixSeconds() + 4_000 });
    other.dht.hold(content);
    await expectUnresolved(fixture, 'invalid_state');
    // It is stored: one of them alone ends it no more.
    other.dht.hold(home.route);
    const connection = await seat.dial();
    assertConforms(!(await connection.putRoute(home.route)), 'one of two contents does not win');
    await expectUnresolved(fixture, 'invalid_state');
    const higher = await another(fixture);
    await connection.storeRoute(higher);
    await expectResolved(fixture, higher, 'the route above the conflict');
  },
);

lookups.check(
  'conflict-with-known',
  { source: '07 §B11', title: 'compares what it finds with the contents of the stored revision' },
  async (context) => {
    const fixture = await openLookup(context);
    const { seat, other, home } = fixture;
    await (await seat.dial()).storeRoute(home.route);
    const { revision } = home.route;
    other.dht.hold(await another(fixture, { revision, expiresAt: unixSeconds() + 4_000 }));
    await expectUnresolved(fixture, 'invalid_state');
  },
);

lookups.check(
  'above-a-conflict',
  { source: '07 §B11', title: 'selects a route above two contents of a lower revision' },
  async (context) => {
    const fixture = await openLookup(context);
    const { seat, other, home } = fixture;
    const third = await context.seat();
    await third.connect();
    const { revision } = home.route;
    const higher = await another(fixture);
    seat.dht.hold(home.route);
    other.dht.hold(await another(fixture, { revision, expiresAt: unixSeconds() + 4_000 }));
    third.dht.hold(higher);
    await expectResolved(fixture, higher);
  },
);

lookups.check(
  'same-contents',
  { source: '07 §B11', title: 'takes two signatures of the same contents for no conflict' },
  async (context) => {
    const fixture = await openLookup(context);
    const { seat, other, home } = fixture;
    seat.dht.hold(home.route);
    other.dht.hold(withOtherSignature(home.route));
    const params = { account: home.id };
    const found = await context.expectOk(context.https(), 'account.route.resolve', params);
    const both = [home.route, withOtherSignature(home.route)].map(canonicalJson);
    assertConforms(both.includes(canonicalJson(found)), 'the route is found, with one signature');
  },
);

lookups.check(
  'expires',
  { source: '07 §B12, §B13', title: 'returns no route that it found past the end of the route' },
  async (context) => {
    const fixture = await openLookup(context);
    const { seat } = fixture;
    const expiresAt = (await relayTime(context)) + 3;
    const route = await another(fixture, { expiresAt });
    seat.dht.hold(route);
    await expectResolved(fixture, route);
    await untilRelayTime(context, expiresAt + 1);
    await expectUnresolved(fixture, 'not_found');
  },
);

lookups.check(
  'memory-before-cache',
  { source: '07 §B12', title: 'returns no found route after it learned of a higher one' },
  async (context) => {
    const fixture = await openLookup(context);
    const { seat, home } = fixture;
    seat.dht.hold(home.route);
    await expectResolved(fixture, home.route);
    const connection = await seat.dial();
    const higher = await another(fixture);
    await connection.storeRoute(higher);
    await expectResolved(fixture, higher, 'the higher route');
    const { revision } = higher;
    await connection.putRoute(
      await another(fixture, { revision, expiresAt: unixSeconds() + 4_000 }),
    );
    await expectUnresolved(fixture, 'invalid_state');
  },
);

lookups.check(
  'not-suspended',
  { source: '07 §B5', title: 'asks no relay that was suspended' },
  async (context) => {
    const registryRefresh = requireRegistryRefresh(context);
    const fixture = await openLookup(context);
    const { seat, other, home } = fixture;
    const connection = await other.dial();
    await other.list('suspended');
    assertConforms(
      await connection.isCutOff({ seconds: 2 * registryRefresh + 3 }),
      'a relay that becomes suspended is served no more',
    );
    seat.dht.hold(home.route);
    other.dht.hold(await another(fixture));
    await expectResolved(fixture, home.route, 'the route at a relay that is not suspended');
    assertEqual(other.dht.requests(getValue, home.id).length, 0, 'requests to a suspended relay');
  },
);

export const dhtLookupChecks = lookups.list;
