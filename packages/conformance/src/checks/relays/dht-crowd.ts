/** The DHT in a network of more relays than a relay asks or names: which ones it chooses (07 §B8). */
import { randomBytes } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { kadTypes } from '@posthouse/protocol/federation';
import { parseJson } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../../assert.ts';
import { pollUntil } from '../../fixtures/poll.ts';
import { recordOf, routeTo } from '../../seat/home-account.ts';
import { relayChecksOf } from './common.ts';
import { byDistance, expectNearestFirst } from './nearest.ts';
import { draftOf, expectPublished, openPublication } from './publication-fixture.ts';

const peers = relayChecksOf('dht.peers');
const publications = relayChecksOf('dht.publication');

const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

peers.check(
  'nearest',
  {
    source: '07 §B7, §B8',
    title: 'names the relays that are nearest to the key: SHA-256 of both, compared by XOR',
    isAlone: true,
  },
  async (context) => {
    const others = await context.crowd();
    const connection = await (await context.seat()).connect();
    for (let count = 0; count < 4; count += 1) {
      const key = randomBytes(32);
      const reply = await connection.ask({ type: kadTypes.findNode, key });
      assertConforms(reply !== undefined, 'FIND_NODE is answered');
      const { closerPeers = [] } = reply;
      const names = new Set(closerPeers.map(({ id }) => hexOf(id)));
      expectNearestFirst(key, others, ({ identity }) => names.has(hexOf(identity.peerId)));
    }
  },
);

publications.check(
  'nearest',
  {
    source: '07 §B8, §B12',
    title: 'sends a route to the relays that are nearest to its key',
    isAlone: true,
  },
  async (context) => {
    const others = await context.crowd();
    const fixture = await openPublication(context);
    const { account } = fixture;
    const { key } = recordOf(
      context.network,
      await expectPublished(fixture, await draftOf(fixture)),
    );
    const isSent = ({ dht }: (typeof others)[0]) => dht.puts(account.id).length > 0;
    await untilQuiet(() => others.filter(isSent).length);
    expectNearestFirst(key, others, isSent);
  },
);

publications.check(
  'to-the-relay-left',
  {
    source: '07 §B12',
    title: 'sends a route to the relay that the account leaves, however far it is from the key',
    isAlone: true,
  },
  async (context) => {
    const others = await context.crowd();
    const fixture = await openPublication(context);
    const { account } = fixture;
    const key = recordOf(context.network, { account: account.id }).key;
    const left = byDistance(key, others).at(-1) as (typeof others)[0];
    const before = await routeTo(account, left);
    await (await left.dial()).storeRoute(before);
    const draft = await draftOf(fixture, { revision: before.revision + 1 });
    const route = await expectPublished(fixture, draft);
    const arrived = async () => left.dht.puts(account.id).at(-1);
    const text = await pollUntil('the relay that the account leaves is sent the route', arrived, {
      seconds: 5,
    });
    assertEqual(parseJson(text), route, 'the route that the relay is sent');
  },
);

/** Waits until a count has not changed for a second. */
async function untilQuiet(count: () => number): Promise<void> {
  let last = -1;
  await pollUntil('an end of the requests', async () => {
    const before = last;
    last = count();
    await setTimeout(500);
    return before === count() ? true : undefined;
  });
}

export const dhtCrowdChecks = [...peers.list, ...publications.list];
