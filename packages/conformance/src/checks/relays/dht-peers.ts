/** The peers that a relay names in the DHT (07 §B5, §B7, §B8). */
import { randomBytes } from 'node:crypto';
import {
  decodeMultiaddr,
  type KadMessage,
  type KadPeer,
  kadTypes,
} from '@posthouse/protocol/federation';
import { assertConforms, assertEqual } from '../../assert.ts';
import { pollUntil } from '../../fixtures/poll.ts';
import { recordOf } from '../../seat/home-account.ts';
import type { RelayConnection } from '../../seat/relay-connection.ts';
import type { RelaySeat } from '../../seat/relay-seat.ts';
import { relayChecksOf, requireRegistryRefresh } from './common.ts';
import { rebind } from './rebinding.ts';

const peers = relayChecksOf('dht.peers');

const { findNode } = kadTypes;

const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

async function findNodes(connection: RelayConnection, key: Uint8Array): Promise<KadMessage> {
  const reply = await connection.ask({ type: findNode, key });
  assertConforms(reply !== undefined, 'FIND_NODE is answered');
  return reply;
}

/** Finds how a relay is named in the answer to FIND_NODE of its own Peer ID, if it is. */
async function named(
  connection: RelayConnection,
  { identity }: Pick<RelaySeat, 'identity'>,
): Promise<KadPeer | undefined> {
  const { closerPeers = [] } = await findNodes(connection, identity.peerId);
  return closerPeers.find(({ id }) => hexOf(id) === hexOf(identity.peerId));
}

peers.check(
  'named',
  { source: '07 §B5, §B7', title: 'names an admitted relay, once, with the addresses it has' },
  async (context) => {
    const [asking, other] = [await context.seat(), await context.seat()];
    const connection = await asking.connect();
    await other.connect();
    const { closerPeers = [] } = await findNodes(connection, other.identity.peerId);
    const ids = closerPeers.map(({ id }) => hexOf(id));
    assertEqual(new Set(ids).size, ids.length, 'distinct peers of the answer');
    const found = closerPeers.filter(({ id }) => hexOf(id) === hexOf(other.identity.peerId));
    assertEqual(found.length, 1, 'how often the admitted relay is named');
    const { host, port } = other.listening;
    const addresses = (found[0]?.addrs ?? []).map((bytes) => decodeMultiaddr(bytes));
    assertConforms(
      addresses.some((address) => address?.host === host && address.port === port),
      'an admitted relay is named with the address of its descriptor',
    );
  },
);

for (const length of [1, 31, 33, 38, 4_096]) {
  peers.check(
    `any-key-of-${length}-bytes`,
    { source: '07 §B7', title: `answers FIND_NODE for a key of ${length} bytes, and echoes it` },
    async (context) => {
      const connection = await (await context.seat()).connect();
      const key = randomBytes(length);
      const reply = await findNodes(connection, key);
      assertEqual(reply.type, findNode, 'type of the answer');
      assertEqual(hexOf(reply.key ?? new Uint8Array()), hexOf(key), 'key of the answer');
      assertEqual(reply.record, undefined, 'record of the answer');
    },
  );
}

peers.check(
  'no-record',
  { source: '07 §B7', title: 'answers FIND_NODE without a record, also for the key of a route' },
  async (context) => {
    const seat = await context.seat();
    const connection = await seat.connect();
    const { route } = await seat.home();
    await connection.storeRoute(route);
    const { key } = recordOf(context.network, route);
    const reply = await findNodes(connection, key);
    assertEqual(reply.record, undefined, 'record of the answer to FIND_NODE');
  },
);

for (const status of ['suspended', 'disabled', 'unlisted'] as const) {
  peers.check(
    `forgets-${status}`,
    { source: '07 §B5', title: `names a relay no more that becomes ${status}` },
    async (context) => {
      const registryRefresh = requireRegistryRefresh(context);
      const [asking, other] = [await context.seat(), await context.seat()];
      const connection = await asking.connect();
      await other.connect();
      if (status === 'unlisted') await other.unlist();
      else await other.list(status);
      const isGone = async () =>
        (await named(connection, other)) === undefined ? true : undefined;
      const seconds = 2 * registryRefresh + 3;
      await pollUntil(`a relay that becomes ${status} is named no more`, isGone, { seconds });
    },
  );
}

peers.check(
  'rebinding',
  { source: '07 §B5', title: 'names a relay with a new Peer ID by that alone' },
  async (context) => {
    const [asking, other] = [await context.seat(), await context.seat()];
    const connection = await asking.connect();
    await other.connect();
    const old = { identity: other.identity };
    assertConforms((await named(connection, old)) !== undefined, 'the first Peer ID is named');
    await rebind(other);
    assertEqual(await named(connection, old), undefined, 'how the old Peer ID is named');
    assertConforms((await named(connection, other)) !== undefined, 'the new Peer ID is named');
  },
);

export const dhtPeerChecks = peers.list;
