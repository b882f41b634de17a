/** Relays that an answer of the DHT names are candidates, and no more (07 §B4, §B5, §B7). */
import { randomBytes } from 'node:crypto';
import { ed25519Identity } from '@posthouse/peer';
import { encodeMultiaddr, type KadPeer, kadTypes } from '@posthouse/protocol/federation';
import { assertConforms, assertEqual } from '../../assert.ts';
import { unixSeconds } from '../../fixtures/account.ts';
import { tampered } from '../../fixtures/tampered.ts';
import type { RelaySeat, SeatOptions } from '../../seat/relay-seat.ts';
import { relayChecksOf } from './common.ts';
import {
  expectNotAsked,
  expectResolved,
  hiddenSeat,
  type LookupFixture,
  openCrowd,
} from './lookup-fixture.ts';
import { another } from './route-faults.ts';

const candidates = relayChecksOf('dht.candidates');

const { getValue, findNode } = kadTypes;

candidates.check(
  'found',
  {
    source: '07 §B4, §B15',
    title: 'asks a candidate of which it knows only Peer ID and address, by handshake alone',
    isAlone: true,
  },
  async (context) => {
    const fixture = await openCrowd(context);
    const { seat, home } = fixture;
    const hidden = await hiddenSeat(fixture);
    seat.dht.nameCloser(home.id, [hidden.kadPeer]);
    hidden.dht.hold(home.route);
    await expectResolved(fixture, home.route, 'the route that only the candidate has');
    assertEqual(hidden.dht.malformed.length, 0, 'malformed requests of the relay');
  },
);

candidates.check(
  'to-the-last',
  {
    source: '07 §B7, §B11',
    title: 'completes a lookup: the highest revision wins, though only the last candidate has it',
    isAlone: true,
  },
  async (context) => {
    const fixture = await openCrowd(context);
    const { seat, home } = fixture;
    const chain = [seat, await hiddenSeat(fixture), await hiddenSeat(fixture)];
    const routes = [home.route, await another(fixture)];
    routes.push(await another(fixture, { revision: home.route.revision + 2 }));
    for (const [index, one] of chain.entries()) {
      const next = chain[index + 1];
      if (next !== undefined) one.dht.nameCloser(home.id, [next.kadPeer]);
      one.dht.hold(routes[index] as (typeof routes)[0]);
    }
    await expectResolved(fixture, routes[2] as (typeof routes)[0], 'the route of the last one');
  },
);

/** Candidates that must not be asked, each with a fault of its own. */
interface Impostor {
  readonly options?: SeatOptions;
  readonly fault?: (hidden: RelaySeat, fixture: LookupFixture) => Promise<void> | void;
  /** How the answer names it; as it is, by default. */
  readonly named?: (hidden: RelaySeat) => KadPeer;
}

const impostors: Readonly<Record<string, Impostor>> = {
  'the-registry-does-not-list': { options: { status: 'unlisted' } },
  'the-registry-lists-as-suspended': { options: { status: 'suspended' } },
  'the-registry-lists-as-disabled': { options: { status: 'disabled' } },
  'has-another-peer-id': {
    named: ({ kadPeer }) => ({ ...kadPeer, id: ed25519Identity(randomBytes(32)).peerId }),
  },
  'shows-an-expired-descriptor': {
    fault: async (hidden) => {
      hidden.shown = JSON.stringify(await hidden.descriptor({ expires_at: unixSeconds() - 1 }));
    },
  },
  'shows-an-altered-descriptor': {
    fault: async (hidden) => {
      const descriptor = await hidden.descriptor();
      const relay_signature = tampered(String(descriptor.relay_signature));
      hidden.shown = JSON.stringify({ ...descriptor, relay_signature });
    },
  },
  'shows-the-descriptor-of-another-relay': {
    fault: async (hidden, { other }) => {
      hidden.shown = JSON.stringify(await other.descriptor());
    },
  },
  'shows-no-descriptor': {
    fault: (hidden) => {
      hidden.shown = '';
    },
  },
  'does-not-sign-the-noise-key': {
    fault: async (hidden) => {
      hidden.identity = { ...hidden.identity, sign: () => new Uint8Array(64) };
      await hidden.listen();
    },
  },
};

for (const [word, { options = {}, fault, named }] of Object.entries(impostors)) {
  candidates.check(
    `not-one-that-${word}`,
    { source: '07 §B4, §B7', title: `sends no request to a candidate that ${word}`, isAlone: true },
    async (context) => {
      const fixture = await openCrowd(context);
      const { seat, home } = fixture;
      const hidden = await hiddenSeat(fixture, options);
      await fault?.(hidden, fixture);
      const peer = named?.(hidden) ?? hidden.kadPeer;
      seat.dht.nameCloser(home.id, [peer]);
      seat.dht.hold(home.route);
      hidden.dht.hold(await another(fixture));
      await expectResolved(fixture, home.route, 'the route of a relay that may be asked');
      expectNotAsked(hidden, home, 'the candidate');
      await expectUnnamed(fixture, [peer]);
    },
  );
}

/** Asserts that the relay under test names none of the peers to others: it has not admitted them. */
async function expectUnnamed({ seat }: LookupFixture, peers: readonly KadPeer[]): Promise<void> {
  const connection = await seat.dial();
  for (const { id } of peers) {
    const reply = await connection.ask({ type: findNode, key: id });
    const isNamed = (reply?.closerPeers ?? []).some((one) => Buffer.compare(one.id, id) === 0);
    assertConforms(!isNamed, 'FIND_NODE names no peer that was not authenticated');
  }
  connection.connection.close('done');
}

const inventedPeer = (addrs: readonly Uint8Array[]): KadPeer => ({
  id: ed25519Identity(randomBytes(32)).peerId,
  addrs,
});

/** A port that nothing listens on. */
const closedPort = encodeMultiaddr({ family: 'ip4', host: '127.0.0.1', port: 1 });

/** Answers that name what is no relay. */
const lies: Readonly<Record<string, (fixture: LookupFixture) => readonly KadPeer[]>> = {
  'invented-relays': () => Array.from({ length: 200 }, () => inventedPeer([closedPort])),
  'relays-without-addresses': () => Array.from({ length: 40 }, () => inventedPeer([])),
  'its-own-address-with-other-ids': ({ seat }) =>
    Array.from({ length: 10 }, () => inventedPeer(seat.kadPeer.addrs)),
  'malformed-peer-ids': ({ seat }) =>
    ['', '00', '0024', 'ff'.repeat(40)].map((id) => ({
      id: Buffer.from(id, 'hex'),
      addrs: seat.kadPeer.addrs,
    })),
  'malformed-addresses': () => [
    inventedPeer(['', '04', '047f000001', 'ff'.repeat(20)].map((text) => Buffer.from(text, 'hex'))),
  ],
  'many-addresses': () => [inventedPeer(Array.from({ length: 500 }, () => closedPort))],
  'the-asking-relay': ({ seat }) => [
    { id: seat.targetAddress.peerId, addrs: [closedPort] },
    seat.kadPeer,
  ],
};

for (const [word, lie] of Object.entries(lies)) {
  candidates.check(
    `past-${word}`,
    {
      source: '07 §B4, §B7',
      title: `finds routes although an answer names ${word}`,
      isAlone: true,
    },
    async (context) => {
      const fixture = await openCrowd(context);
      const { seat, other, home } = fixture;
      const peers = lie(fixture);
      seat.dht.nameCloser(home.id, peers);
      other.dht.hold(home.route);
      await expectResolved(fixture, home.route);
      if (word !== 'the-asking-relay') await expectUnnamed(fixture, peers.slice(0, 5));
      assertConforms(
        seat.dht.requests(getValue, home.id).length < 10,
        'the relay that lies is asked a few times, not again and again',
      );
    },
  );
}

candidates.check(
  'not-of-other-protocols',
  { source: '07 §A9', title: 'sends no request to a candidate without relay RPC', isAlone: true },
  async (context) => {
    const fixture = await openCrowd(context);
    const { seat, home } = fixture;
    const hidden = await hiddenSeat(fixture, { without: 'rpc' });
    seat.dht.nameCloser(home.id, [hidden.kadPeer]);
    seat.dht.hold(home.route);
    hidden.dht.hold(await another(fixture));
    await expectResolved(fixture, home.route, 'the route of a relay that may be asked');
    expectNotAsked(hidden, home, 'the candidate');
  },
);

export const dhtCandidateChecks = candidates.list;
