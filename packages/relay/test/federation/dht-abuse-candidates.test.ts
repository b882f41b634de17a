/** What answers that name invented peers can make this relay do (07 §B4, §B7), in counts. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import type { PeerStream } from '@posthouse/peer';
import { utf8 } from '@posthouse/protocol';
import {
  decodeKadMessage,
  deriveRouteKey,
  encodeKadMessage,
  encodeMultiaddr,
  type KadPeer,
  kadTypes,
  parsePeerId,
  peerIdOfKey,
} from '@posthouse/protocol/federation';
import { canonicalJson } from '@posthouse/protocol/json';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { defaultLimits } from '../../src/limits.ts';
import { Person } from '../fixtures/person.ts';
import { network } from '../support/modules.ts';
import { unlimitedHandshakes } from '../support/served-network.ts';
import { servedRelay } from '../support/served-relay.ts';
import { ForeignRelay } from './foreign-relay.ts';

const { dhtCandidateRate, dhtCandidateBurst, dhtCandidateDials, peerAddresses } = defaultLimits;
const relay = servedRelay({
  limits: {
    ...unlimitedHandshakes,
    ...{ dhtCandidateRate, dhtCandidateBurst, dhtCandidateDials, peerAddresses },
    // Two other relays are more than a bucket, so that lookups follow the peers that answers name.
    ...{ dhtBucket: 1, dhtReplicas: 1 },
    federationAddressLookupRate: 1_000,
  },
});

/** Most peers of an answer, and most addresses of one. */
const named = { peers: 40, addresses: 8 };

let liar: ForeignRelay;
let other: ForeignRelay;
let server: Server;
let connections = 0;
beforeEach(async () => {
  connections = 0;
  server = createServer((socket) => {
    connections += 1;
    socket.on('error', () => {});
    socket.destroy();
  });
  server.listen(0, '0.0.0.0');
  await once(server, 'listening');
  liar = await ForeignRelay.start(relay);
  other = await ForeignRelay.start(relay, { byte: 0x92 });
  liar.serveDht = lie;
  other.serveDht = lie;
});
afterEach(async () => {
  await liar[Symbol.asyncDispose]();
  await other[Symbol.asyncDispose]();
  await new Promise((resolve) => server.close(resolve));
});

let invented = 0;
/** A new peer, at addresses at which the test counts connections. */
function inventedPeer(): KadPeer {
  invented += 1;
  const data = network.primitives.sha256(utf8(`invented ${invented}`));
  const id = peerIdOfKey(network.primitives, { type: 'ed25519', data });
  const { port } = server.address() as AddressInfo;
  const addrs = Array.from({ length: named.addresses }, (_, index) =>
    encodeMultiaddr({ family: 'ip4', host: `127.0.0.${index + 1}`, port }),
  );
  return { id, addrs };
}

/** The relay under test itself, at the same addresses. */
function ownPeer(): KadPeer {
  const id = parsePeerId(relay.server.context.identity.peerId) as Uint8Array;
  return { ...inventedPeer(), id };
}

async function lie(stream: PeerStream): Promise<void> {
  const frame = await stream.readFrame();
  if (frame === undefined) return;
  const { type, key = new Uint8Array() } = decodeKadMessage(frame, { peers: 0, addresses: 0 });
  const closerPeers = [ownPeer(), ...Array.from({ length: named.peers - 1 }, inventedPeer)];
  await stream.writeFrame(encodeKadMessage({ type, key, closerPeers }));
}

const tried = (outcome: string) =>
  relay.server.context.metrics.value('dht_candidates', { outcome });

test('07 §B4: invented peers are dialled as often as is allowed in all, whatever is named', async () => {
  const { routeDirectory } = relay.server.context;
  // Of each answer as many are dialled as a bucket has.
  const lookups = dhtCandidateBurst + 30;
  for (let index = 0; index < lookups; index += 1) {
    const { account } = new Person(relay, `unknown ${index}`);
    expect((await routeDirectory.resolveRemote(account)).routes).toEqual([]);
  }
  expect(invented).toBeGreaterThanOrEqual(lookups * named.peers);
  expect(tried('admitted')).toBe(0);
  expect(tried('refused')).toBeLessThanOrEqual(dhtCandidateBurst);
  expect(tried('limited')).toBeGreaterThan(0);
  expect(connections).toBeLessThanOrEqual(dhtCandidateBurst * peerAddresses);
  expect(relay.server.context.metrics.value('peers', { state: 'eligible' })).toBe(2);
});

test('07 §B7: a route is found although another relay names invented peers near its key', async () => {
  const bob = new Person(relay, 'bob');
  const route = await other.route(bob, 7);
  other.serveDht = async (stream) => {
    const frame = await stream.readFrame();
    if (frame === undefined) return;
    const { type, key = new Uint8Array() } = decodeKadMessage(frame, { peers: 0, addresses: 0 });
    const isAsked = Buffer.compare(key, deriveRouteKey(network, bob.account)) === 0;
    const record = { key, value: utf8(canonicalJson(route)) };
    const isFound = type === kadTypes.getValue && isAsked;
    await stream.writeFrame(encodeKadMessage({ type, key, ...(isFound && { record }) }));
  };
  expect(await relay.call('account.route.resolve', { account: bob.account })).toEqual(route);
});
