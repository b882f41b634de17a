/** Answers that a relay must not use, and relays that give none (07 §B6, §B7, §B10). */
import { deriveRouteKey, type KadMessage, kadTypes } from '@posthouse/protocol/federation';
import { canonicalJson } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../../assert.ts';
import { pollUntil } from '../../fixtures/poll.ts';
import type { ReplyToRequest } from '../../seat/dht-service.ts';
import { HomeAccount, recordOf } from '../../seat/home-account.ts';
import { relayChecksOf } from './common.ts';
import {
  expectResolved,
  expectUnresolved,
  type LookupFixture,
  openLookup,
} from './lookup-fixture.ts';
import { another, routeFaults } from './route-faults.ts';

const answers = relayChecksOf('dht.answers');

const { getValue, findNode, putValue } = kadTypes;

for (const [word, make] of Object.entries(routeFaults)) {
  answers.check(
    `drops-${word}`,
    { source: '07 §B7, §B10', title: `uses no route with ${word} that a relay returns` },
    async (context) => {
      const fixture = await openLookup(context);
      const { seat, other, home } = fixture;
      seat.dht.hold(home.route);
      other.dht.hold(await make(fixture));
      await expectResolved(fixture, home.route, `the route next to one with ${word}`);
      // It has not learned the revision.
      const next = await another(fixture);
      const connection = await seat.dial();
      assertConforms(await connection.putRoute(next), 'the next revision is accepted as before');
    },
  );
}

type MakeReply = (fixture: LookupFixture) => Promise<KadMessage> | KadMessage;

/** Answers to GET_VALUE that do not answer the request; each has a valid route of some kind. */
const wrongReplies: Readonly<Record<string, MakeReply>> = {
  'the-route-of-another-account': async ({ context, seat, home }) => {
    const key = deriveRouteKey(context.network, home.id);
    const { route } = await HomeAccount.create(context.network, seat);
    return { type: getValue, key, record: { key, value: Buffer.from(canonicalJson(route)) } };
  },
  'another-record-key': async (fixture) => {
    const { key, value } = recordOf(fixture.context.network, await another(fixture));
    const { key: other } = recordOf(fixture.context.network, await foreign(fixture));
    return { type: getValue, key, record: { key: other, value } };
  },
  'another-key': async (fixture) => {
    const record = recordOf(fixture.context.network, await another(fixture));
    const { key } = recordOf(fixture.context.network, await foreign(fixture));
    return { type: getValue, key, record };
  },
  'another-type': async (fixture) => {
    const record = recordOf(fixture.context.network, await another(fixture));
    return { type: findNode, key: record.key, record };
  },
  'no-key': async (fixture) => {
    const record = recordOf(fixture.context.network, await another(fixture));
    return { type: getValue, record };
  },
};

async function foreign({ context, seat }: LookupFixture) {
  return (await HomeAccount.create(context.network, seat)).route;
}

for (const [word, make] of Object.entries(wrongReplies)) {
  answers.check(
    `drops-an-answer-with-${word}`,
    { source: '07 §B6, §B7', title: `uses no answer to GET_VALUE with ${word}` },
    async (context) => {
      const fixture = await openLookup(context);
      const { seat, other, home } = fixture;
      seat.dht.hold(home.route);
      const reply = await make(fixture);
      other.dht.answer(home.id, ({ request }) =>
        request.type === getValue ? reply : other.dht.honest(request),
      );
      await expectResolved(fixture, home.route, `the route next to an answer with ${word}`);
    },
  );
}

/** Relays that give no valid answer. */
const failures: Readonly<Record<string, () => ReplyToRequest | Promise<ReplyToRequest>>> = {
  'resets-streams': () => 'reset',
  'ends-streams': () => 'ended',
  'sends-no-protobuf': () => ({ frame: Buffer.from('no protobuf') }),
  'answers-nothing': () => new Promise(() => {}),
};

/** Requests with one key that are more than attempts: a tight loop (07 §B6). */
const tooMany = 5;

for (const [word, fail] of Object.entries(failures)) {
  answers.check(
    `past-a-relay-that-${word}`,
    { source: '07 §B6', title: `finds routes although one relay ${word}, and asks it in no loop` },
    async (context) => {
      const fixture = await openLookup(context);
      const { seat, other, home } = fixture;
      seat.dht.hold(home.route);
      other.dht.answer(home.id, fail);
      await expectResolved(fixture, home.route);
      const asked = [getValue, findNode, putValue].reduce<number>(
        (sum, type) => sum + other.dht.requests(type, home.id).length,
        0,
      );
      assertConforms(asked < tooMany, `a few requests to that relay, not ${asked}`);
    },
  );
}

/** Seconds that a relay may need until it asks for an unknown account once more. */
const askedAgain = 60;

answers.check(
  'recovers',
  { source: '07 §B6, §B15', title: 'finds a route when the relays that have it answer again' },
  async (context) => {
    const fixture = await openLookup(context);
    const { seat, other, home } = fixture;
    for (const one of [seat, other]) one.dht.answer(home.id, () => 'reset');
    await expectUnresolved(fixture, 'not_found');
    for (const one of [seat, other]) {
      one.dht.reset(home.id);
      one.dht.hold(home.route);
      // A relay that connects again is back.
      await one.dial();
    }
    const find = async () => {
      const params = { account: home.id };
      const answer = await context.https().call('account.route.resolve', params);
      return answer.ok ? answer.result : undefined;
    };
    const found = await pollUntil('the route is found', find, { seconds: askedAgain });
    assertEqual(found, home.route, 'the route of the account');
  },
);

export const dhtAnswerChecks = answers.list;
