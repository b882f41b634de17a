/** Routes that are sent again while they are valid, and those that are not (07 §B5, §B12). */
import type { FinalRoute } from '@posthouse/protocol';
import { type JsonObject, parseJson } from '@posthouse/protocol/json';
import { assertEqual, NotApplicable } from '../../assert.ts';
import { pollUntil } from '../../fixtures/poll.ts';
import { relayTime, requireShortPeriod, untilRelayTime } from '../../fixtures/relay-info.ts';
import type { TestContext } from '../../fixtures/test-context.ts';
import { routeTo } from '../../seat/home-account.ts';
import { relayChecksOf, requireRestart } from './common.ts';
import {
  draftOf,
  expectPublished,
  openPublication,
  type PublicationFixture,
  sentRoutes,
} from './publication-fixture.ts';

const republication = relayChecksOf('dht.republication');

/** Returns how often the relay under test sends the routes of its accounts, in seconds. */
function requireInterval({ target }: TestContext): number {
  const { republication: interval } = target.seats ?? {};
  if (interval === undefined) {
    throw new NotApplicable(
      'the check waits for the relay to publish routes again: --republication states how often',
    );
  }
  requireShortPeriod(interval, 'routes are not published again');
  return interval;
}

/** Waits until other relays were sent the route of an account so many times more. */
async function untilSentAgain(
  fixture: PublicationFixture,
  { times, interval }: { readonly times: number; readonly interval: number },
): Promise<readonly string[]> {
  const before = countOf(fixture);
  const sent = async () => (countOf(fixture) >= before + times ? true : undefined);
  const seconds = (times + 1) * interval + 5;
  await pollUntil(`the route of an account is sent ${times} times more`, sent, { seconds });
  return sentRoutes(fixture);
}

/** Counts how often the route was sent: to one relay, the one that got it most often. */
function countOf({ relays, account }: PublicationFixture): number {
  return Math.max(...relays.map(({ dht }) => dht.puts(account.id).length));
}

republication.check(
  'again',
  {
    source: '07 §B12',
    title: 'sends a valid route of its accounts again, unchanged, also to relays that lost it',
    waitsForPeriod: true,
  },
  async (context) => {
    const interval = requireInterval(context);
    const fixture = await openPublication(context);
    const route = await expectPublished(fixture, await draftOf(fixture));
    for (const { dht } of fixture.relays) dht.drop(fixture.account.id);
    for (const text of await untilSentAgain(fixture, { times: 1, interval })) {
      assertEqual(parseJson(text), route, 'the route that is sent again');
    }
  },
);

republication.check(
  'none-of-old',
  {
    source: '07 §B5, §B12',
    title: 'sends no expired route again, and none that a higher one has superseded',
    waitsForPeriod: true,
  },
  async (context) => {
    const interval = requireInterval(context);
    const [current, expired, left] = [
      await openPublication(context),
      await openPublication(context),
      await openPublication(context),
    ];
    const expiresAt = (await relayTime(context)) + 4;
    await expectPublished(current, await draftOf(current));
    const ended = await expectPublished(expired, await draftOf(expired, { expiresAt }));
    const old = await expectPublished(left, await draftOf(left));
    const seat = await context.seat();
    const connection = await seat.connect();
    const revision = old.revision + 1;
    await connection.storeRoute(await routeTo(left.account, seat, { revision }));
    await untilRelayTime(context, expiresAt + 1);
    // What was under way then has ended when another route has been sent once more.
    await untilSentAgain(current, { times: 1, interval });
    const [expiredBefore, leftBefore] = [sentOf(expired, ended), sentOf(left, old)];
    await untilSentAgain(current, { times: 2, interval });
    assertEqual(sentOf(expired, ended), expiredBefore, 'how often the expired route was sent');
    assertEqual(sentOf(left, old), leftBefore, 'how often the superseded route was sent');
  },
);

/** Counts how often other relays were sent a revision of an account. */
function sentOf(fixture: PublicationFixture, route: FinalRoute): number {
  const revisionOf = (text: string) => (parseJson(text) as JsonObject).revision;
  return sentRoutes(fixture).filter((text) => revisionOf(text) === route.revision).length;
}

republication.check(
  'after-a-restart',
  {
    source: '07 §B12',
    title: 'goes on with it after a restart',
    waitsForPeriod: true,
    isAlone: true,
  },
  async (context) => {
    const interval = requireInterval(context);
    const restart = requireRestart(context);
    const fixture = await openPublication(context);
    await expectPublished(fixture, await draftOf(fixture));
    await restart();
    await untilSentAgain(fixture, { times: 1, interval });
  },
);

export const dhtRepublicationChecks = republication.list;
