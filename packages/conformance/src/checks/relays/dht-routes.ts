/** Routes in the relay DHT: their checks, versions and conflicts (07 §B7, §B9 to §B12). */
import { cosignRoute, encodeBase64url, type FinalRoute, verifyRoute } from '@posthouse/protocol';
import { canonicalJson, type JsonObject, parseJson } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../../assert.ts';
import { unixSeconds } from '../../fixtures/account.ts';
import { relayTime, untilRelayTime } from '../../fixtures/relay-info.ts';
import type { TestContext } from '../../fixtures/test-context.ts';
import { routeTo } from '../../seat/home-account.ts';
import type { RelayConnection } from '../../seat/relay-connection.ts';
import { relayChecksOf } from './common.ts';
import { another, type RouteFixture, routeFaults } from './route-faults.ts';

const routes = relayChecksOf('dht.routes');

interface Fixture extends RouteFixture {
  readonly connection: RelayConnection;
}

async function open(context: TestContext): Promise<Fixture> {
  const seat = await context.seat();
  return { context, seat, connection: await seat.connect(), home: await seat.home() };
}

routes.check(
  'get-home',
  { source: '07 §B7, §B12', title: 'returns the route of an account at home here, unchanged' },
  async (context) => {
    const { account } = await context.testAccount();
    const { connection } = await open(context);
    const text = await connection.getRoute(account.id);
    assertConforms(text !== undefined, 'the route of an account at home here is found');
    const route: unknown = parseJson(text);
    verifyRoute(context.network, route, { relayPublicKey: context.descriptor.public_key });
    const read = { account: account.id };
    const resolved = await context.expectOk(context.https(), 'account.route.resolve', read);
    assertEqual(route, resolved, 'the route in the DHT and for clients');
  },
);

routes.check(
  'put',
  { source: '07 §B7', title: 'echoes a valid route, and then returns it unchanged' },
  async (context) => {
    const fixture = await open(context);
    const { connection, home } = fixture;
    await connection.storeRoute(home.route);
    const found = await connection.getRoute(home.id);
    assertEqual(found, canonicalJson(home.route), 'the stored route');
    await connection.storeRoute(home.route);
    const resolved = await context.expectOk(context.https(), 'account.route.resolve', {
      account: home.id,
    });
    assertEqual(resolved, home.route, 'the stored route for clients');
  },
);

routes.check(
  'put-with-unknown-members',
  { source: '07 §B12', title: 'copies a route with all its unknown members' },
  async (context) => {
    const { connection, home, seat } = await open(context);
    const { network } = context;
    const draft = await home.account.route({ relayId: seat.relayId });
    const { account_signature: _, ...unsigned } = draft;
    const extended = { ...unsigned, future: { deep: ['kept'] } };
    const input = network.bytes(extended, ['account_signature', 'relay_signature']);
    const account_signature = encodeBase64url(await home.account.signer.sign(input));
    const route = await cosignRoute(network, seat.signer, { ...extended, account_signature });
    await connection.storeRoute(route);
    assertEqual(await connection.getRoute(home.id), canonicalJson(route), 'the stored route');
  },
);

routes.check(
  'put-lower',
  { source: '07 §B7, §B11', title: 'does not accept a route below the highest revision' },
  async (context) => {
    const fixture = await open(context);
    const { connection, home } = fixture;
    const lower = home.route;
    const higher = await another(fixture);
    await connection.storeRoute(higher);
    assertConforms(!(await connection.putRoute(lower)), 'a lower revision is not echoed');
    assertEqual(await connection.getRoute(home.id), canonicalJson(higher), 'the stored route');
  },
);

routes.check(
  'put-conflict',
  { source: '07 §B11', title: 'two contents of one revision leave no route until a higher one' },
  async (context) => {
    const fixture = await open(context);
    const { connection, home } = fixture;
    const { revision } = home.route;
    await connection.storeRoute(home.route);
    const other = await another(fixture, { revision, expiresAt: unixSeconds() + 4_000 });
    await connection.putRoute(other);
    assertEqual(await connection.getRoute(home.id), undefined, 'the route during a conflict');
    const call = { method: 'account.route.resolve', params: { account: home.id } };
    await context.expectError(context.https(), call, 'invalid_state');
    assertConforms(!(await connection.putRoute(home.route)), 'one of two contents does not win');
    assertEqual(await connection.getRoute(home.id), undefined, 'the route of a standing conflict');
    const higher = await another(fixture);
    await connection.storeRoute(higher);
    assertEqual(await connection.getRoute(home.id), canonicalJson(higher), 'the higher route');
  },
);

routes.check(
  'expires',
  { source: '07 §B5, §B11', title: 'never returns an expired route, nor an older one instead' },
  async (context) => {
    const fixture = await open(context);
    const { connection, home } = fixture;
    const expiresAt = (await relayTime(context)) + 3;
    await connection.storeRoute(home.route);
    await connection.storeRoute(await another(fixture, { expiresAt }));
    await untilRelayTime(context, expiresAt + 1);
    assertEqual(await connection.getRoute(home.id), undefined, 'the expired route');
    assertConforms(!(await connection.putRoute(home.route)), 'an older route is not reinstated');
    assertEqual(await connection.getRoute(home.id), undefined, 'the route below an expired one');
  },
);

for (const [word, make] of Object.entries(routeFaults)) {
  routes.check(
    `refused-${word}`,
    {
      source: '07 §B10, §B15',
      title: `does not accept a route with ${word}, nor learn its revision`,
    },
    async (context) => {
      const fixture = await open(context);
      const { connection, home } = fixture;
      await connection.storeRoute(home.route);
      const route = await make(fixture);
      assertConforms(!(await connection.putRoute(route)), `a route with ${word} is not echoed`);
      const found = await connection.getRoute(home.id);
      assertEqual(found, canonicalJson(home.route), `the route after one with ${word}`);
      const next = await another(fixture);
      assertConforms(await connection.putRoute(next), 'the next revision is accepted as before');
    },
  );
}

routes.check(
  'leave',
  { source: '07 §B12, §C7', title: 'stops serving an account when a higher route names another' },
  async (context) => {
    const { seat, connection } = await open(context);
    const { account, device } = await context.testAccount({ publicDiscovery: true });
    const query = { account: account.id };
    const status = { ...query, device_id: device.id };
    await connection.expectResult('device.status', status);
    const route = await routeTo(account, seat, { revision: Date.now() + 1_000 });
    await connection.storeRoute(route);
    assertEqual(await connection.getRoute(account.id), canonicalJson(route), 'the stored route');
    const calls = [
      { method: 'device.status', params: status },
      { method: 'profile.resolve', params: query },
      { method: 'device.state.resolve', params: query },
    ];
    for (const call of calls) await connection.expectRefused(call, 'route_stale');
  },
);

routes.check(
  'leave-lower',
  { source: '07 §B11', title: 'serves an account on if a route elsewhere has a lower revision' },
  async (context) => {
    const { seat, connection } = await open(context);
    const { account, device } = await context.testAccount();
    const route: FinalRoute = await routeTo(account, seat, { revision: 5 });
    assertConforms(!(await connection.putRoute(route)), 'a lower revision is not echoed');
    const params = { account: account.id, device_id: device.id };
    await connection.expectResult('device.status', params);
  },
);

routes.check(
  'leave-conflict',
  { source: '07 §B11, §C4', title: 'serves no account whose highest revision has two contents' },
  async (context) => {
    const { seat, connection } = await open(context);
    const { account, device } = await context.testAccount();
    const known = parseJson(String(await connection.getRoute(account.id))) as JsonObject;
    const route = await routeTo(account, seat, { revision: Number(known.revision) });
    await connection.putRoute(route);
    const params = { account: account.id, device_id: device.id };
    await connection.expectRefused({ method: 'device.status', params }, 'invalid_state');
    assertEqual(await connection.getRoute(account.id), undefined, 'the route during a conflict');
  },
);

export const dhtRouteChecks = routes.list;
