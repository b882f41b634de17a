/** What another relay may rely on after a restart of the relay under test (07 §B11, §C8). */
import { canonicalJson, parseJson } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../../assert.ts';
import { unixSeconds } from '../../fixtures/account.ts';
import { readTimeline } from '../../fixtures/direct-messages.ts';
import { HomeAccount, routeTo } from '../../seat/home-account.ts';
import { refusal } from '../../seat/relay-service.ts';
import { relayChecksOf, requireRestart } from './common.ts';
import { delivery, expectAccepted, openDelivery } from './delivery-fixture.ts';
import { expectResolved, expectUnresolved, openLookup } from './lookup-fixture.ts';
import { another } from './route-faults.ts';
import { attempts, expectRetried, expectUnchanged, openSending, send } from './sending-fixture.ts';

const restarts = relayChecksOf('restart');

restarts.check(
  'routes',
  {
    source: '07 §B5, §B11',
    title: 'keeps routes, their highest revisions and conflicts',
    isAlone: true,
  },
  async (context) => {
    const restart = requireRestart(context);
    const seat = await context.seat();
    const before = await seat.connect();
    const [known, inConflict] = [await seat.home(), await seat.home()];
    const lower = known.route;
    const higher = await routeTo(known.account, seat, { revision: lower.revision + 1 });
    await before.storeRoute(higher);
    await before.storeRoute(inConflict.route);
    const { revision } = inConflict.route;
    const expiresAt = unixSeconds() + 4_000;
    await before.putRoute(await routeTo(inConflict.account, seat, { revision, expiresAt }));
    const own = await context.testAccount();
    const ownRoute = await before.getRoute(own.account.id);
    await restart();

    const after = await seat.connect();
    assertEqual(await after.getRoute(known.id), canonicalJson(higher), 'the stored route');
    assertConforms(!(await after.putRoute(lower)), 'a lower revision is not echoed');
    assertEqual(await after.getRoute(inConflict.id), undefined, 'the route of a conflict');
    const call = { method: 'account.route.resolve', params: { account: inConflict.id } };
    await context.expectError(context.https(), call, 'invalid_state');
    assertConforms(
      !(await after.putRoute(inConflict.route)),
      'one of two contents does not end a conflict',
    );
    const above = await routeTo(inConflict.account, seat, { revision: revision + 1 });
    await after.storeRoute(above);
    const resolved = await after.getRoute(inConflict.id);
    assertEqual(resolved, canonicalJson(above), 'the route above a conflict');
    assertConforms(ownRoute !== undefined, 'the route of an account at home here is found');
    const found = parseJson((await after.getRoute(own.account.id)) ?? 'null');
    assertEqual(found, parseJson(ownRoute), 'the route of an account at home here');
  },
);

restarts.check(
  'found',
  {
    source: '07 §B5, §B11',
    title: 'keeps the revisions and conflicts of routes that lookups found',
    isAlone: true,
  },
  async (context) => {
    const restart = requireRestart(context);
    const known = await openLookup(context);
    const { seat, other } = known;
    const higher = await another(known);
    seat.dht.hold(higher);
    await expectResolved(known, higher);
    const inConflict = { ...known, home: await HomeAccount.create(context.network, seat) };
    const { revision } = inConflict.home.route;
    seat.dht.hold(inConflict.home.route);
    const expiresAt = unixSeconds() + 4_000;
    other.dht.hold(await another(inConflict, { revision, expiresAt }));
    await expectUnresolved(inConflict, 'invalid_state');
    await restart();

    for (const { dht } of [seat, other]) {
      dht.hold(known.home.route);
      dht.hold(inConflict.home.route);
    }
    const connection = await seat.connect();
    assertConforms(!(await connection.putRoute(known.home.route)), 'a lower revision is refused');
    await expectResolved(known, higher, 'the route found before');
    await expectUnresolved(inConflict, 'invalid_state');
  },
);

restarts.check(
  'received',
  {
    source: '07 §C8',
    title: 'confirms a message that it accepted before, and stores it once',
    isAlone: true,
  },
  async (context) => {
    const restart = requireRestart(context);
    const fixture = await openDelivery(context);
    const params = delivery(fixture);
    const first = await expectAccepted(fixture.connection, params);
    await restart();
    const connection = await fixture.seat.connect();
    assertEqual(await expectAccepted(connection, params), first, 'accepted_at of a repeat');
    const other = { method: 'message.deliver', params: { ...params, future: 1 } };
    await connection.expectRefused(other, 'state_conflict');
    const caller = await context.deviceSession(fixture.to.device);
    const records = await readTimeline(context, { ...fixture.to, caller });
    assertEqual(records.length, 1, 'records after repeats');
  },
);

restarts.check(
  'sent',
  { source: '07 §C8', title: 'goes on with a delivery under way, unchanged', isAlone: true },
  async (context) => {
    const restart = requireRestart(context);
    const fixture = await openSending(context);
    const { service } = fixture.seat;
    let isRestarted = false;
    service.answer('message.deliver', (call) =>
      isRestarted ? service.honest(call) : refusal('temporarily_unavailable'),
    );
    const sent = await send(fixture);
    await restart();
    isRestarted = true;
    const caller = await context.deviceSession(fixture.from.device);
    await fixture.seat.connect();
    await expectRetried({ ...fixture, from: { ...fixture.from, caller } }, sent);
    assertConforms(attempts(fixture.seat, sent).length > 0, 'attempts of the delivery');
    expectUnchanged(fixture.seat, sent);
  },
);

export const restartChecks = restarts.list;
