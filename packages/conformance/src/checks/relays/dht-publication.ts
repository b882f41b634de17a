/** Publication of routes: the commit, the copies, and which answers count as one (07 §B7, §B12). */
import { type KadRequest, kadTypes } from '@posthouse/protocol/federation';
import { type JsonValue, parseJson } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../../assert.ts';
import { pollUntil } from '../../fixtures/poll.ts';
import { tampered } from '../../fixtures/tampered.ts';
import type { AnsweringRequest, ReplyToRequest } from '../../seat/dht-service.ts';
import { relayChecksOf, requireRegistryRefresh } from './common.ts';
import {
  answerAll,
  answerAllHonestly,
  draftOf,
  expectPublished,
  extendedDraft,
  openPublication,
  type PublicationFixture,
  publish,
  sentRoutes,
} from './publication-fixture.ts';

const publications = relayChecksOf('dht.publication');

const { putValue } = kadTypes;

publications.check(
  'copies',
  {
    source: '07 §B6, §B8, §B12',
    title: 'sends a published route to other relays, unchanged, under the key of its account',
    isAlone: true,
  },
  async (context) => {
    const fixture = await openPublication(context);
    const { relays } = fixture;
    const draft = await extendedDraft(fixture, { future: { deep: ['kept'] } });
    const route = await expectPublished(fixture, draft);
    const texts = sentRoutes(fixture);
    assertConforms(texts.length > 0, 'PUT_VALUE with the key of the account at another relay');
    for (const text of texts) assertEqual(parseJson(text), route, 'the route that is sent');
    const malformed = relays.flatMap(({ dht }) => dht.malformed);
    assertEqual(malformed.length, 0, `malformed requests of the relay (${malformed[0]})`);
  },
);

publications.check(
  'after-the-commit',
  {
    source: '07 §B12',
    title: 'sends a route when it is in force, and not before',
    isAlone: true,
  },
  async (context) => {
    const fixture = await openPublication(context);
    const { account, relays } = fixture;
    const connection = await (relays[0] as (typeof relays)[0]).dial();
    const seen: (JsonValue | undefined)[] = [];
    answerAll(fixture, ({ dht }) => async ({ request }) => {
      if (request.type === putValue) {
        const params = { account: account.id };
        const answer = await context.https().call('account.route.resolve', params);
        seen.push(answer.ok ? answer.result : undefined);
        const text = await connection.getRoute(account.id);
        seen.push(text === undefined ? undefined : parseJson(text));
      }
      return dht.honest(request);
    });
    const route = await expectPublished(fixture, await draftOf(fixture));
    assertConforms(seen.length > 0, 'the route is sent');
    for (const one of seen) assertEqual(one, route, 'the route in force while it is sent');
  },
);

publications.check(
  'waits',
  {
    source: '07 §B12',
    title: 'answers the client when other relays have stored the route, and not before',
    isAlone: true,
  },
  async (context) => {
    const fixture = await openPublication(context);
    const gate = Promise.withResolvers<void>();
    answerAll(fixture, ({ dht }) => async ({ request }) => {
      if (request.type === putValue) await gate.promise;
      return dht.honest(request);
    });
    let isAnswered = false;
    const published = publish(fixture, await draftOf(fixture)).finally(() => {
      isAnswered = true;
    });
    try {
      const isSent = async () => sentRoutes(fixture).length > 0 || isAnswered || undefined;
      await pollUntil('the route is sent', isSent);
      // An answer that does not wait would come before those to later calls.
      for (let calls = 0; calls < 5; calls += 1) {
        await context.expectOk(context.https(), 'relay.info');
      }
      assertConforms(!isAnswered, 'no answer before another relay has stored the route');
    } finally {
      gate.resolve();
    }
    const { ok } = await published;
    assertConforms(ok, 'account.route.publish succeeds once the route is stored elsewhere');
  },
);

type NotStoring = (request: Extract<KadRequest, { type: 0 }>) => ReplyToRequest;

/** Answers to PUT_VALUE that acknowledge nothing. */
const notStored: Readonly<Record<string, NotStoring>> = {
  'without-a-record': ({ type, key }) => ({ type, key }),
  'with-an-altered-value': ({ type, key, record }) => ({
    ...{ type, key },
    record: { key, value: Buffer.concat([record.value, Buffer.from(' ')]) },
  }),
  'with-another-record-key': ({ type, key, record }) => ({
    ...{ type, key },
    record: { key: Buffer.from(key).reverse(), value: record.value },
  }),
  'of-another-type': ({ key, record }) => ({ type: kadTypes.getValue, key, record }),
  'that-ends-the-stream': () => 'ended',
};

for (const [word, reply] of Object.entries(notStored)) {
  publications.check(
    `missed-by-answers-${word}`,
    {
      source: '07 §B7, §B12, §B13',
      title: `counts no answer to PUT_VALUE ${word}: the route is in force, its copies are missing`,
      isAlone: true,
    },
    async (context) => {
      const fixture = await openPublication(context);
      answerAll(fixture, notStoring(reply));
      const draft = await draftOf(fixture);
      await expectMissed(fixture, draft);
      answerAllHonestly(fixture);
      await expectPublished(fixture, draft);
    },
  );
}

const notStoring =
  (reply: NotStoring) =>
  ({ dht }: PublicationFixture['relays'][0]): AnsweringRequest =>
  ({ request }) =>
    request.type === putValue ? reply(request) : dht.honest(request);

async function expectMissed(
  fixture: PublicationFixture,
  draft: Awaited<ReturnType<typeof draftOf>>,
): Promise<void> {
  const { context, account, caller } = fixture;
  const call = { method: 'account.route.publish', params: draft };
  await context.expectError(caller, call, 'temporarily_unavailable');
  const params = { account: account.id };
  const found = await context.expectOk(context.https(), 'account.route.resolve', params);
  const { relay_signature: _, ...signed } = found as Record<string, JsonValue>;
  assertEqual(signed, draft, 'the route in force');
}

publications.check(
  'nothing-refused',
  {
    source: '07 §B13',
    title: 'sends no route that it refuses to sign',
    isAlone: true,
  },
  async (context) => {
    const fixture = await openPublication(context);
    const { account, relays } = fixture;
    const { revision } = await expectPublished(fixture, await draftOf(fixture));
    const before = sentRoutes(fixture);
    const next = await draftOf(fixture, { revision: revision + 1 });
    const refused = {
      'an altered signature': { ...next, account_signature: tampered(next.account_signature) },
      'a lower revision': await draftOf(fixture, { revision: revision - 1 }),
      'another content of the revision': await draftOf(fixture, {
        ...{ revision, expiresAt: next.expires_at + 60 },
      }),
      'another relay': await account.route({ relayId: relays[0]?.relayId as string }),
      'over 4,096 bytes with its signature': await extendedDraft(fixture, {
        note: 'n'.repeat(3_600),
      }),
    };
    for (const [what, draft] of Object.entries(refused)) {
      const { ok } = await publish(fixture, draft);
      assertConforms(!ok, `a route with ${what} is refused`);
    }
    const signed = new Set(before);
    const others = sentRoutes(fixture).filter((text) => !signed.has(text));
    assertEqual(others.length, 0, 'refused routes that were sent');
  },
);

publications.check(
  'not-while-suspended',
  {
    source: '07 §B12, §B13',
    title: 'signs and sends no route while its own record is not active',
    isAlone: true,
  },
  async (context) => {
    const registryRefresh = requireRegistryRefresh(context);
    const fixture = await openPublication(context);
    const { target } = context;
    const draft = await draftOf(fixture);
    const probe = await openPublication(context);
    const probed = await draftOf(probe);
    {
      await using _ = await target.seats?.suspend(target.entry);
      const seconds = 2 * registryRefresh + 3;
      const isNoticed = async () => ((await publish(probe, probed)).ok ? undefined : true);
      await pollUntil('a relay that is suspended signs no routes', isNoticed, { seconds });
      const call = { method: 'account.route.publish', params: draft };
      await context.expectError(fixture.caller, call, 'temporarily_unavailable');
      assertEqual(sentRoutes(fixture).length, 0, 'routes that were sent');
      const resolve = { method: 'account.route.resolve', params: { account: fixture.account.id } };
      await context.expectError(context.https(), resolve, 'not_found');
    }
    const isBack = async () => ((await publish(fixture, draft)).ok ? true : undefined);
    await pollUntil('it publishes when it is active again', isBack);
  },
);

export const dhtPublicationChecks = publications.list;
