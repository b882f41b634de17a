import { type FinalRoute, hex, Network, type RelayDescriptor, utf8 } from '@posthouse/protocol';
import {
  decodeKadMessage,
  deriveRouteKey,
  encodeFrame,
  encodeKadMessage,
  type KadMessage,
  kadTypes,
  parsePeerId,
} from '@posthouse/protocol/federation';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type BlockKind, storeBlock } from '../../src/blocks/block-store.ts';
import { closerPeers } from '../../src/federation/dht/closer-peers.ts';
import { DhtTable } from '../../src/federation/dht/table.ts';
import { Person } from '../fixtures/person.ts';
import { network } from '../support/modules.ts';
import { patience, unlimitedHandshakes } from '../support/served-network.ts';
import { servedRelay } from '../support/served-relay.ts';
import { ForeignRelay } from './foreign-relay.ts';

const relay = servedRelay({
  limits: {
    ...unlimitedHandshakes,
    federationAddressLookupRate: 1_000,
    dhtBytes: 1_000_000,
    dhtBytesBurst: 1_048_576,
    dhtRate: 1,
    dhtBurst: 30,
    dhtAskRate: 1,
    dhtAskBurst: 10,
    dhtPutRate: 1,
    dhtPutBurst: 10,
    dhtNewAccounts: 3,
  },
});
const ann = relay.person('ann');
let foreign: ForeignRelay;
beforeEach(async () => {
  foreign = await ForeignRelay.start(relay);
});
afterEach(() => foreign[Symbol.asyncDispose]());

const faults = (fault: string) => relay.server.context.metrics.value('peer_faults', { fault });

const request = (id: number) => ({
  ...{ jsonrpc: '2.0', id, method: 'device.status' },
  params: { account: ann.account, device_id: ann.device().deviceId },
});

describe('07 §C2: a stream of relay RPC', () => {
  const frameOf = (id: number) => encodeFrame(utf8(JSON.stringify(request(id))));

  test('with a second request is reset and counted, and none is answered', async () => {
    const stream = await foreign.openRpc();
    await stream.write(Buffer.concat([frameOf(1), frameOf(2)]));
    await expect(stream.readFrame()).rejects.toThrow(/reset/);
    await vi.waitFor(() => expect(faults('frame')).toBe(1), patience);
  });

  test('with a second request after the answer is reset', async () => {
    const stream = await foreign.openRpc();
    await stream.write(frameOf(1));
    const answer = await stream.readFrame();
    expect(JSON.parse(Buffer.from(answer as Uint8Array).toString())).toMatchObject({
      id: 1,
      result: { status: 'active' },
    });
    await stream.write(frameOf(2));
    await vi.waitFor(() => expect(stream.isClosed).toBe(true), patience);
    expect(stream.signal.aborted).toBe(true);
  });

  test('with a notification ends without an answer', async () => {
    const { id, ...notification } = request(1);
    const stream = await foreign.openRpc();
    await stream.writeFrame(
      utf8(JSON.stringify({ ...notification, method: 'device.status.changed' })),
    );
    expect(await stream.readFrame()).toBeUndefined();
  });

  test('without a request ends quietly: the peer looks whether the protocol is there', async () => {
    const stream = await foreign.openRpc();
    stream.end();
    expect(await stream.readFrame()).toBeUndefined();
    expect(faults('frame')).toBe(0);
  });

  test.each([
    ['an invalid length', Uint8Array.of(0x81, 0x00)],
    ['a length above 1 MiB', Uint8Array.of(0x81, 0x80, 0x40)],
    ['no UTF-8', Uint8Array.of(0x01, 0xff)],
  ])('with %s is reset, and counted', async (_, bytes) => {
    const stream = await foreign.openRpc();
    await stream.write(bytes);
    await expect(stream.readFrame()).rejects.toThrow(/reset/);
    await vi.waitFor(() => expect(faults('frame')).toBe(1), patience);
  });

  test('with no JSON gets its answer, and is counted', async () => {
    const stream = await foreign.openRpc();
    await stream.writeFrame(utf8('{'));
    const answer = JSON.parse(Buffer.from((await stream.readFrame()) ?? []).toString());
    expect(answer).toMatchObject({ id: null, error: { code: -32700 } });
    expect(faults('frame')).toBe(1);
  });

  test('is one of 64; all are answered', async () => {
    const streams = await Promise.all(Array.from({ length: 64 }, () => foreign.openRpc()));
    await Promise.all(
      streams.map((stream, index) => stream.writeFrame(utf8(JSON.stringify(request(index))))),
    );
    const answers = await Promise.all(streams.map((stream) => stream.readFrame()));
    const ids = answers.map((bytes) => JSON.parse(Buffer.from(bytes as Uint8Array).toString()).id);
    expect(ids).toEqual(streams.map((_, index) => index));
  });
});

const key = (person: Person) => deriveRouteKey(network, person.account);

function put(route: JsonObject, more: Partial<KadMessage> = {}) {
  const own = deriveRouteKey(network, route.account as string);
  const record = { key: own, value: utf8(canonicalJson(route)) };
  return foreign.askDht({ type: kadTypes.putValue, key: own, record, ...more });
}

const textOf = (reply: KadMessage | undefined) =>
  Buffer.from(reply?.record?.value as Uint8Array).toString();

const get = (person: Person) => foreign.askDht({ type: kadTypes.getValue, key: key(person) });

describe('07 §B7: FIND_NODE and GET_VALUE', () => {
  test('GET_VALUE returns the route of an account at home here, byte for byte', async () => {
    const reply = await get(ann);
    const route = await relay.call('account.route.resolve', { account: ann.account });
    expect(reply?.key).toEqual(key(ann));
    expect(textOf(reply)).toBe(canonicalJson(route));
  });

  test('GET_VALUE of an unknown account or an expired route has no record', async () => {
    expect((await get(new Person(relay, 'unknown')))?.record).toBeUndefined();
    relay.clock.advance(31_536_000);
    await foreign.stop();
    await foreign.listen();
    await foreign.dial();
    expect((await get(ann))?.record).toBeUndefined();
  });

  test('an answer names other eligible peers with their addresses, and not the asking one', async () => {
    await using other = await ForeignRelay.start(relay, { byte: 0x92 });
    const own = parsePeerId(relay.server.context.identity.peerId) as Uint8Array;
    const found = await foreign.askDht({ type: kadTypes.findNode, key: own });
    expect(found?.closerPeers).toHaveLength(1);
    expect(found?.closerPeers?.[0]?.addrs).toHaveLength(1);
    const seen = await other.askDht({ type: kadTypes.findNode, key: own });
    expect(seen?.closerPeers?.[0]?.id).not.toEqual(found?.closerPeers?.[0]?.id);
  });

  test('a lookup input is mapped once, however many peers there are and however long it is', () => {
    const mapped: number[] = [];
    const { sha256 } = network.primitives;
    const counting = {
      ...network.primitives,
      sha256: (bytes: Uint8Array) => {
        mapped.push(bytes.length);
        return sha256(bytes);
      },
    };
    const peer = (index: number) => ({
      ...{ relayId: `${index}`, addresses: [], descriptor: {} as RelayDescriptor },
      peerId: Uint8Array.of(index, 1),
    });
    const peers = Array.from({ length: 30 }, (_, index) => peer(index));
    const context = {
      network: new Network({ context: network.context, primitives: counting }),
      limits: relay.server.context.limits,
    };
    const none = () => ({ [Symbol.dispose]: () => {} });
    const find = (relayId: string) => peers[Number(relayId)];
    const eligibility = { all: () => peers, find, onEnter: none, onDrop: none };
    const self = Uint8Array.of(50, 1);
    const table = new DhtTable(context, { eligibility, self, probe: async () => true });
    const [asking] = peers as [ReturnType<typeof peer>];
    const found = closerPeers(context, table, { key: new Uint8Array(1_000_000), asking });
    expect(found).toHaveLength(20);
    expect(found.map(({ id }) => id)).not.toContainEqual(asking.peerId);
    expect(mapped.filter((length) => length > 2)).toEqual([1_000_000]);
  });

  test('§C9: each request counts once; one above the rate resets the stream', async () => {
    for (let count = 0; count < 30; count += 1) expect((await get(ann))?.key).toEqual(key(ann));
    await expect(get(ann)).rejects.toThrow(/reset/);
    relay.clock.advance(1);
    expect((await get(ann))?.key).toEqual(key(ann));
  });

  test('§C9: this relay asks no other one more often than that one allows', async () => {
    let asked = 0;
    foreign.serveDht = async (stream) => {
      const frame = await stream.readFrame();
      if (frame === undefined) return;
      asked += 1;
      await stream.writeFrame(frame);
    };
    const { routeDirectory } = relay.server.context;
    const people = Array.from({ length: 13 }, (_, index) => new Person(relay, `person ${index}`));
    const found = people.map(({ account }) => routeDirectory.resolveRemote(account));
    await Promise.all(found.slice(0, 10));
    expect(asked).toBe(10);
    relay.clock.advance(1);
    await found[10];
    expect(asked).toBe(11);
    relay.clock.advance(1);
    await found[11];
    expect(asked).toBe(12);
    await relay.stop();
    await Promise.all(found);
  });

  test('§C9: more bytes than a relay may send reset the stream, and are no fault', async () => {
    const large = { type: kadTypes.findNode, key: new Uint8Array(600_000) };
    expect((await foreign.askDht(large))?.key).toHaveLength(600_000);
    await expect(foreign.askDht(large)).rejects.toThrow(/reset/);
    expect(faults('dht_message')).toBe(0);
    relay.clock.advance(1);
    expect((await foreign.askDht(large))?.key).toHaveLength(600_000);
  });

  test.each<[string, () => KadMessage | Uint8Array]>([
    ['GET_VALUE with a key of 31 bytes', () => ({ type: 1, key: new Uint8Array(31) })],
    ['GET_VALUE with a record', () => ({ type: 1, key: key(ann), record: { key: key(ann) } })],
    ['FIND_NODE without a key', () => ({ type: 4 })],
    ['ADD_PROVIDER', () => ({ type: 2, key: key(ann) })],
    ['no type', () => encodeKadMessage({ type: 1, key: key(ann) }).subarray(2)],
    ['no protobuf', () => Uint8Array.of(0xff)],
  ])('07 §B6: %s resets the stream, and is counted', async (_, message) => {
    await expect(foreign.askDht(message())).rejects.toThrow(/reset/);
    await vi.waitFor(() => expect(faults('dht_message')).toBe(1), patience);
  });
});

test('07 §B12: after a start the other relays are asked for the accounts at home here', async () => {
  const asked = new Set<string>();
  foreign.serveDht = async (stream) => {
    const frame = await stream.readFrame();
    if (frame === undefined) return;
    const { key: asks = new Uint8Array() } = decodeKadMessage(frame, { peers: 0, addresses: 0 });
    asked.add(hex(asks));
    await stream.writeFrame(frame);
  };
  relay.clock.advance(1);
  await relay.restart();
  await vi.waitFor(() => expect([...asked]).toEqual([hex(key(ann))]), patience);
});

describe('07 §B7, §B10, §B11: PUT_VALUE', () => {
  test('stores a valid route, echoes its record, and serves it after a restart', async () => {
    const bob = new Person(relay, 'bob');
    const route = await foreign.route(bob, 7);
    const reply = await put(route);
    expect(textOf(reply)).toBe(canonicalJson(route));
    await foreign.stop();
    await relay.restart();
    await foreign.listen();
    await foreign.dial();
    expect((await get(bob))?.record).toEqual(reply?.record);
    expect(await relay.call('account.route.resolve', { account: bob.account })).toEqual(route);
  });

  test('a lower revision is not accepted; the same again is echoed', async () => {
    const bob = new Person(relay, 'bob');
    const route = await foreign.route(bob, 7);
    expect((await put(route))?.record).toBeDefined();
    expect((await put(await foreign.route(bob, 6)))?.record).toBeUndefined();
    expect((await put(route))?.record).toBeDefined();
    expect(textOf(await get(bob))).toBe(canonicalJson(route));
  });

  test('another content of a revision is a conflict, which a higher revision ends', async () => {
    const bob = new Person(relay, 'bob');
    expect((await put(await foreign.route(bob, 7)))?.record).toBeDefined();
    relay.clock.advance(1);
    expect((await put(await foreign.route(bob, 7)))?.record).toBeUndefined();
    expect((await get(bob))?.record).toBeUndefined();
    expect((await put(await foreign.route(bob, 8)))?.record).toBeDefined();
    expect((await get(bob))?.record).toBeDefined();
  });

  test('a route that names the own relay, which this relay did not sign, resets', async () => {
    const bob = new Person(relay, 'bob');
    const route = await foreign.route(bob, 7);
    await expect(put({ ...route, relay_id: relay.relayId })).rejects.toThrow(/reset/);
  });

  test.each<[string, (route: FinalRoute) => JsonObject, number]>([
    ['a changed member', (route) => ({ ...route, revision: 9 }), 1],
    ['no relay signature', ({ relay_signature, ...route }) => route, 1],
    ['a wrong type', (route) => ({ ...route, $type: 'svc.profile' }), 1],
    ['over 4,096 bytes', (route) => ({ ...route, more: 'x'.repeat(4_096) }), 1],
  ])('a route with %s resets the stream and changes nothing', async (_, change, count) => {
    const bob = new Person(relay, 'bob');
    await expect(put(change(await foreign.route(bob, 7)))).rejects.toThrow(/reset/);
    await vi.waitFor(() => expect(faults('dht_message')).toBe(count), patience);
    expect((await get(bob))?.record).toBeUndefined();
    expect((await put(await foreign.route(bob, 0)))?.record).toBeDefined();
  });

  test('a record of another key, or without a value, resets the stream', async () => {
    const bob = new Person(relay, 'bob');
    const route = await foreign.route(bob, 7);
    const value = utf8(canonicalJson(route));
    const record = { key: key(ann), value };
    await expect(put(route, { record })).rejects.toThrow(/reset/);
    await expect(put(route, { record, key: key(ann) })).rejects.toThrow(/reset/);
    await expect(put(route, { record: { key: key(bob) } })).rejects.toThrow(/reset/);
    expect((await get(bob))?.record).toBeUndefined();
  });

  test('an expired route, or one signed too far ahead, resets and is no fault', async () => {
    const bob = new Person(relay, 'bob');
    const route = await foreign.route(bob, 7);
    relay.clock.advance(-301);
    await expect(put(route)).rejects.toThrow(/reset/);
    relay.clock.advance(301);
    expect(faults('dht_message')).toBe(0);
    expect((await put(await foreign.route(bob, 6)))?.record).toBeDefined();
  });

  test('a route of a relay that is not in the registry is not accepted', async () => {
    await using other = await ForeignRelay.start(relay, { byte: 0x92 });
    const bob = new Person(relay, 'bob');
    const route = await other.route(bob, 7);
    await other.list('disabled');
    relay.clock.advance(61);
    expect((await put(route))?.record).toBeUndefined();
    expect((await get(bob))?.record).toBeUndefined();
  });

  test('above the rate of its relay resets before it is verified, and is no fault', async () => {
    const bob = new Person(relay, 'bob');
    const route = await foreign.route(bob, 7);
    for (let count = 0; count < 10; count += 1) await put(route);
    await expect(put({ ...route, revision: 9 })).rejects.toThrow(/reset/);
    expect(faults('dht_message')).toBe(0);
    relay.clock.advance(1);
    expect((await put(route))?.record).toBeDefined();
  });

  test('a relay makes a limited number of accounts known by its answers', async () => {
    const people = ['b', 'c', 'd', 'e'].map((name) => new Person(relay, name));
    const routes = await Promise.all(people.map((person) => foreign.route(person, 7)));
    foreign.serveDht = async (stream) => {
      const frame = await stream.readFrame();
      if (frame === undefined) return;
      const { type, key: asked = new Uint8Array() } = decodeKadMessage(frame, {
        peers: 0,
        addresses: 0,
      });
      const index = people.findIndex((person) => Buffer.compare(key(person), asked) === 0);
      const value = utf8(canonicalJson(routes[index] as FinalRoute));
      await stream.writeFrame(
        encodeKadMessage({ type, key: asked, record: { key: asked, value } }),
      );
    };
    const codes: string[] = [];
    for (const { account } of people) {
      const answer = relay.call('account.route.resolve', { account });
      codes.push(
        await answer.then(
          () => 'ok',
          () => 'refused',
        ),
      );
    }
    expect(codes).toEqual(['ok', 'ok', 'ok', 'refused']);
    const rows = await relay.server.context.storage.read((tx) =>
      tx.all('SELECT account FROM account_routes WHERE relay_id = ?', foreign.relayId),
    );
    expect(rows).toHaveLength(3);
  });

  test('more new accounts than a relay may store in a day reset; known ones do not', async () => {
    const people = ['b', 'c', 'd', 'e'].map((name) => new Person(relay, name));
    const routes = await Promise.all(people.map((person) => foreign.route(person, 7)));
    const [first, second, third, fourth] = routes as [
      FinalRoute,
      FinalRoute,
      FinalRoute,
      FinalRoute,
    ];
    for (const route of [first, second, third]) expect((await put(route))?.record).toBeDefined();
    await expect(put(fourth)).rejects.toThrow(/reset/);
    expect((await put(first))?.record).toBeDefined();
  });
});

describe('02 §18: what the operator blocks', () => {
  const block = (kind: BlockKind, id: string) => {
    const { storage } = relay.server.context;
    const now = relay.clock.now();
    return storage.write('blocks', (tx) =>
      storeBlock(tx, { kind, id, reason: '', endsAt: now + 60 }, { now, limit: 10 }),
    );
  };

  test('within two seconds the connections from a blocked address end; there is none until it is over', async () => {
    const { closed } = foreign.connection;
    await block('address', '127.0.0.1');
    relay.clock.advance(2);
    await closed;
    await expect(foreign.dial()).rejects.toThrow();
    relay.clock.advance(60);
    await vi.waitFor(() => foreign.dial(), patience);
  });

  test('within two seconds those of a blocked relay end', async () => {
    const { closed } = foreign.connection;
    await block('relay', foreign.relayId);
    relay.clock.advance(1);
    await closed;
    await expect(foreign.dial()).rejects.toThrow();
  });
});
