/** What another relay may rely on after a restart of the relay under test (07 §B11, §C8). */
import { canonicalJson, parseJson } from '@posthouse/protocol/json';
import { assertConforms, assertEqual, NotApplicable } from '../../assert.ts';
import { unixSeconds } from '../../fixtures/account.ts';
import { readTimeline } from '../../fixtures/direct-messages.ts';
import type { TestContext } from '../../fixtures/test-context.ts';
import { routeTo } from '../../seat/home-account.ts';
import { refusal } from '../../seat/relay-service.ts';
import { relayChecksOf } from './common.ts';
import { delivery, expectAccepted, openDelivery } from './delivery-fixture.ts';
import { attempts, expectRetried, expectUnchanged, openSending, send } from './sending-fixture.ts';

const restarts = relayChecksOf('restart');

function restartOf({ target }: TestContext): () => Promise<void> {
  if (target.restart !== undefined) return target.restart;
  throw new NotApplicable('--restart is missing: a command that restarts the relay');
}

restarts.check(
  'routes',
  {
    source: '07 §B5, §B11',
    title: 'keeps routes, their highest revisions and conflicts',
    isAlone: true,
  },
  async (context) => {
    const restart = restartOf(context);
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
    assertConforms(ownRoute !== undefined, 'the route of an account at home here is found');
    const found = parseJson((await after.getRoute(own.account.id)) ?? 'null');
    assertEqual(found, parseJson(ownRoute), 'the route of an account at home here');
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
    const restart = restartOf(context);
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
    const restart = restartOf(context);
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
