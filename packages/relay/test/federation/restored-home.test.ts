/** A relay whose database was put back, and that cannot learn at once where its accounts are. */
import { join } from 'node:path';
import type { PeerStream } from '@posthouse/peer';
import {
  accountSigner,
  cosignRoute,
  deriveRelayId,
  type FinalRoute,
  utf8,
} from '@posthouse/protocol';
import { decodeKadMessage, deriveRouteKey, encodeKadMessage } from '@posthouse/protocol/federation';
import { canonicalJson } from '@posthouse/protocol/json';
import { expect, test, vi } from 'vitest';
import { enterRelay } from '../../src/federation/registry/file.ts';
import type { Person } from '../fixtures/person.ts';
import { Chain } from '../support/chain.ts';
import { network } from '../support/modules.ts';
import { backUpRoute, doubtRoutes } from '../support/put-back.ts';
import { patience } from '../support/served-network.ts';
import { servedRelay } from '../support/served-relay.ts';
import { ForeignRelay } from './foreign-relay.ts';

test('04 §17.1, 07 §B5: a restored relay that has not read the registry serves none of its accounts', async () => {
  await using chain = await Chain.start();
  const [a, b] = [await chain.relay(), await chain.relay()];
  for (const relay of [a, b]) chain.register(relay);
  const later = (seconds: number) => {
    for (const { clock } of [a, b]) clock.advance(seconds);
    a.server.wakeJobs();
  };
  later(721);
  b.server.wakeJobs();
  const connected = () => a.server.context.metrics.value('peers', { state: 'connected' });
  await vi.waitFor(() => expect(connected()).toBe(1), patience);
  const dan = await a.register('dan');
  b.people.set(dan.account, dan);
  const putBack = await backUpRoute(a, dan);
  await dan.moveTo(b);
  await b.stop();
  await putBack();
  await doubtRoutes(a, [dan]);
  await a.stop();
  // What is stored of the registry is too old to tell of other relays.
  for (const { clock } of [a, b]) clock.advance(3_600);
  chain.node.fate = () => 'close';
  await a.resume();
  const resolve = () => a.call('account.route.resolve', { account: dan.account });
  await expect(resolve()).rejects.toMatchObject({ code: 'temporarily_unavailable' });
  // However long that lasts.
  later(86_400);
  await expect(resolve()).rejects.toMatchObject({ code: 'temporarily_unavailable' });
  chain.node.fate = () => 'answer';
  await b.resume();
  later(721);
  await vi.waitFor(
    async () => expect(await resolve()).toMatchObject({ relay_id: b.relayId }),
    patience,
  );
});

const relay = servedRelay();

/** Answers each question with a route, whatever it is about. */
function answering(route: FinalRoute): (stream: PeerStream) => Promise<void> {
  return async (stream) => {
    const frame = await stream.readFrame();
    if (frame === undefined) return;
    const { type } = decodeKadMessage(frame, { peers: 0, addresses: 0 });
    const key = deriveRouteKey(network, route.account);
    const record = { key, value: utf8(canonicalJson(route)) };
    await stream.writeFrame(encodeKadMessage({ type, key, record }));
  };
}

/** A route that names a relay of the registry whose descriptor cannot be fetched: it has no server. */
async function routeAway(person: Person): Promise<FinalRoute> {
  const signer = accountSigner(network, new Uint8Array(32).fill(0x93));
  const relay_id = deriveRelayId(network, signer.publicKey);
  const endpoint = 'https://127.0.0.1:1/svc/v1';
  const registry = join(relay.data, 'registry.json');
  await enterRelay(network, registry, { relay_id, endpoint, status: 'active', updated_at: 1 });
  return await cosignRoute(network, signer, await person.route({ relay_id }));
}

test('04 §17.1, 07 §B10: a route that another relay answers and that cannot be verified ends no doubt', async () => {
  const dan = await relay.register('dan');
  await using witness = await ForeignRelay.start(relay);
  const moved = await routeAway(dan);
  const forged = { ...moved, revision: moved.revision + 1 };
  const resolve = () => relay.call('account.route.resolve', { account: dan.account });
  witness.serveDht = answering(moved);
  await doubtRoutes(relay, [dan]);
  await expect(resolve()).rejects.toMatchObject({ code: 'temporarily_unavailable' });
  relay.clock.advance(31);
  await expect(resolve()).rejects.toMatchObject({ code: 'temporarily_unavailable' });
  // Without the account's signature it says nothing of the account.
  witness.serveDht = answering(forged);
  relay.clock.advance(31);
  expect(await resolve()).toMatchObject({ relay_id: relay.relayId });
});
