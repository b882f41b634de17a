import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { concatBytes } from '../../src/encoding/bytes.ts';
import { encodeBytesField, encodeVarintField } from '../../src/encoding/protobuf.ts';
import {
  checkKadReply,
  checkKadRequest,
  decodeKadMessage,
  decodeKadMessageInSteps,
  encodeFindNode,
  encodeFrame,
  encodeKadMessage,
  encodeMultiaddr,
  formatMultiaddr,
  type KadMessage,
  type KadRequest,
  kadCandidates,
  kadTypes,
  parseMultiaddr,
  parsePeerId,
  peerIdOfKey,
  type TcpAddress,
} from '../../src/federation/index.ts';
import { fromHex, hex, utf8 } from '../../src/index.ts';
import { nodePrimitives as primitives } from '../../src/node/primitives.ts';
import { refusal, refusesEveryCut, survivesRandomBytes } from './decoders.ts';

const bounds = { peers: 40, addresses: 8 };
const decode = (bytes: Uint8Array) => decodeKadMessage(bytes, bounds);
const key = fromHex('d8109da229d2c3cdc4de85d5988607a878a9b6907846de679b108bd7de056080');
const peer = parsePeerId('12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA') as Uint8Array;
const peerOf = (seed: number) =>
  peerIdOfKey(primitives, { type: 'ed25519', data: new Uint8Array(32).fill(seed) });
const binary = (text: string) => encodeMultiaddr(parseMultiaddr(text) as TcpAddress);

const value = utf8('{"a":1}');
const record = { key, value };
const { putValue, getValue, findNode } = kadTypes;

/** A message checked as a request. */
function requestOf(message: KadMessage): KadRequest {
  checkKadRequest(message);
  return message;
}

describe('07 §B6: messages of the DHT', () => {
  test('07 §D1: FIND_NODE of a resource key and of a peer, with the length prefix', () => {
    expect(hex(encodeFrame(encodeFindNode(key)))).toBe(`2408041220${hex(key)}`);
    expect(hex(encodeFrame(encodeFindNode(peer)))).toBe(`2a08041226${hex(peer)}`);
  });

  test('type 0 is written explicitly, as 08 00', () => {
    const bytes = encodeKadMessage({ type: putValue, key, record });
    expect(hex(bytes)).toBe(`08001220${hex(key)}1a2b${'0a20'}${hex(key)}${'1207'}${hex(value)}`);
    expect(decode(bytes)).toEqual({ type: putValue, key, record, closerPeers: [] });
  });

  const bytes = fc.uint8Array({ maxLength: 50 });
  const message = fc.record(
    {
      type: fc.nat(5),
      key: bytes,
      record: fc.record({ key: bytes, value: bytes }, { requiredKeys: [] }),
      closerPeers: fc.array(
        fc.record({ id: bytes, addrs: fc.array(bytes, { maxLength: bounds.addresses }) }),
        { maxLength: 10 },
      ),
    },
    { requiredKeys: ['type', 'closerPeers'] },
  );

  test('what was encoded comes back', () => {
    fc.assert(
      fc.property(message, (message) => {
        expect(decode(encodeKadMessage(message))).toEqual(message);
      }),
    );
  });

  test('a message cut anywhere is refused, or is the message without its last fields', () => {
    fc.assert(
      fc.property(message, (message) => {
        const whole = encodeKadMessage(message);
        for (let end = 0; end < whole.length; end += 1) {
          const cut = whole.subarray(0, end);
          if (refusal(() => decode(cut)) !== undefined) continue;
          expect(whole.subarray(0, end)).toEqual(encodeKadMessage(decode(cut)));
        }
      }),
      { numRuns: 30 },
    );
    refusesEveryCut(
      (cut) => {
        const read = decode(cut);
        checkKadRequest(read);
      },
      encodeKadMessage({ type: putValue, key, record }),
    );
  });

  test('the last value of a field counts, records merge, unknown fields are ignored', () => {
    const fields = [
      encodeVarintField(1, 5),
      encodeBytesField(2, Uint8Array.of(1)),
      encodeBytesField(3, encodeBytesField(1, key)),
      // providerPeers and clusterLevelRaw of libp2p, with contents that mean nothing here.
      encodeBytesField(9, Uint8Array.of(0xff)),
      encodeVarintField(10, 3),
      encodeBytesField(3, encodeBytesField(2, Uint8Array.of(9))),
      encodeBytesField(3, concatBytes(encodeBytesField(2, value), encodeBytesField(5, value))),
      encodeBytesField(2, key),
      encodeVarintField(1, 0),
    ];
    expect(decode(concatBytes(...fields))).toEqual({
      type: putValue,
      key,
      record,
      closerPeers: [],
    });
  });

  test.each<[string, Uint8Array, RegExp]>([
    ['no type (07 §D2)', encodeBytesField(2, key), /^message\.type: missing$/],
    ['nothing', new Uint8Array(), /^message\.type: missing$/],
    ['a type that is no varint', encodeBytesField(1, key), /^message\.type: expected/],
    ['a key that is no bytes', fromHex('08041001'), /^message\.key: expected/],
    ['a record that is no message', fromHex('08001801'), /^message\.record: expected/],
    ['a malformed record', fromHex('08001a010a'), /^message\.record: malformed/],
    ['a record key that is no bytes', fromHex('08001a020801'), /^message\.record\.key/],
    ['a record value that is no bytes', fromHex('08001a021001'), /^message\.record\.value/],
    ['a peer that is no message', fromHex('08044001'), /^message\.closerPeers: expected/],
    ['a malformed peer', fromHex('080442010a'), /^message\.closerPeers: malformed/],
    ['a peer ID that is no bytes', fromHex('080442020801'), /^message\.closerPeers\.id/],
    ['an address that is no bytes', fromHex('080442021001'), /^message\.closerPeers\.addrs/],
  ])('%s is refused', (_name, bytes, message) => {
    expect(refusal(() => decode(bytes))).toMatch(message);
  });

  test('peers and addresses above the bounds are not decoded, and a peer needs an ID', () => {
    const peers = Array.from({ length: 45 }, (_, index) => ({
      id: peerOf(index),
      addrs: Array.from({ length: 10 }, (_, at) => Uint8Array.of(at)),
    }));
    const first = { id: peerOf(99), addrs: [] };
    const nameless = encodeBytesField(8, encodeBytesField(2, key));
    const bytes = concatBytes(
      nameless,
      encodeKadMessage({ type: findNode, key, closerPeers: [first, ...peers] }),
    );
    const { closerPeers } = decode(bytes);
    expect(closerPeers).toEqual(
      [first, ...peers.slice(0, 39)].map(({ id, addrs }) => ({ id, addrs: addrs.slice(0, 8) })),
    );
    // Also in a peer above the bounds a wrong wire type is an error of the message.
    expect(refusal(() => decode(concatBytes(bytes, fromHex('4001'))))).toBeDefined();
  });

  test('a message of 1 MiB of empty peers decodes to none', () => {
    const bytes = new Uint8Array(1_048_576);
    for (let at = 0; at < bytes.length; at += 2) bytes.set([0x42, 0], at);
    bytes.set([8, 4]);
    expect(decode(bytes)).toEqual({ type: findNode, closerPeers: [] });
  });

  test.each([
    ['unknown fields', [0x7a, 0x00]],
    ['empty peers', [0x42, 0x00]],
    ['empty records', [0x1a, 0x00]],
  ])(
    'of 20,000 %s a thousand are read in a step, and all of them are the same message',
    (_, pair) => {
      const many = new Uint8Array(40_000).map((_, at) => pair[at % 2] ?? 0);
      const bytes = concatBytes(many, encodeKadMessage({ type: findNode, key }));
      const steps = decodeKadMessageInSteps(bytes, bounds);
      let count = 1;
      let step = steps.next();
      for (; step.done !== true; step = steps.next()) count += 1;
      expect(count).toBe(21);
      expect(step.value).toEqual(decode(bytes));
    },
  );

  test('a record, a peer and an unknown group of many fields are read in steps, too', () => {
    const pairs = (first: number) => new Uint8Array(40_000).map((_, at) => [first, 0][at % 2] ?? 0);
    const group = concatBytes(fromHex('7b'), pairs(0x12), fromHex('7c'));
    for (const inner of [
      encodeBytesField(3, pairs(0x12)),
      encodeBytesField(8, pairs(0x12)),
      group,
    ]) {
      const steps = decodeKadMessageInSteps(concatBytes(inner, fromHex('0804')), bounds);
      let count = 0;
      while (steps.next().done !== true) count += 1;
      expect(count).toBe(20);
    }
  });

  test('random bytes decode or are refused', () => {
    const peers = [{ id: peer, addrs: [binary('/ip4/192.0.2.1/tcp/1')] }];
    survivesRandomBytes(
      (bytes) => kadCandidates(decode(bytes)),
      [
        encodeKadMessage({ type: putValue, key, record }),
        encodeKadMessage({ type: findNode, key, closerPeers: peers }),
      ],
    );
  });
});

describe('07 §B7: requests', () => {
  test.each<[string, KadMessage]>([
    ['FIND_NODE of a key', { type: findNode, key }],
    ['FIND_NODE of a Peer ID', { type: findNode, key: peer }],
    ['FIND_NODE of one byte', { type: findNode, key: Uint8Array.of(1) }],
    ['GET_VALUE', { type: getValue, key }],
    ['PUT_VALUE', { type: putValue, key, record }],
    ['PUT_VALUE with peers', { type: putValue, key, record, closerPeers: [] }],
  ])('%s passes', (_name, message) => {
    expect(refusal(() => checkKadRequest(message))).toBeUndefined();
  });

  test.each<[string, KadMessage, RegExp]>([
    ['ADD_PROVIDER', { type: 2, key }, /^message\.type/],
    ['GET_PROVIDERS', { type: 3, key }, /^message\.type/],
    ['PING', { type: 5 }, /^message\.type/],
    ['an unknown type', { type: 2 ** 64, key }, /^message\.type/],
    ['FIND_NODE without a key', { type: findNode }, /^message\.key: missing/],
    ['FIND_NODE of nothing', { type: findNode, key: new Uint8Array() }, /^message\.key: missing/],
    ['FIND_NODE with a record', { type: findNode, key, record }, /^message\.record: not/],
    ['GET_VALUE without a key', { type: getValue }, /^message\.key: missing/],
    ['GET_VALUE of 31 bytes', { type: getValue, key: key.subarray(1) }, /^message\.key: exp/],
    ['GET_VALUE of a Peer ID', { type: getValue, key: peer }, /^message\.key: expected/],
    ['GET_VALUE with a record', { type: getValue, key, record }, /^message\.record: not/],
    [
      'GET_VALUE with an empty record',
      { type: getValue, key, record: {} },
      /^message\.record: not/,
    ],
    ['PUT_VALUE without a record', { type: putValue, key }, /^message\.record: missing/],
    ['PUT_VALUE of 33 bytes', { type: putValue, key: new Uint8Array(33), record }, /^message\.key/],
    [
      'PUT_VALUE of a record without a key',
      { type: putValue, key, record: { value } },
      /^message\.record\.key/,
    ],
    [
      'PUT_VALUE of a record with another key',
      { type: putValue, key, record: { key: key.with(0, 0), value } },
      /^message\.record\.key/,
    ],
    [
      'PUT_VALUE of a record without a value',
      { type: putValue, key, record: { key } },
      /^message\.record\.value: missing/,
    ],
  ])('%s is refused', (_name, message, expected) => {
    expect(refusal(() => checkKadRequest(message))).toMatch(expected);
  });
});

describe('07 §B7: replies', () => {
  const requests = {
    find: requestOf({ type: findNode, key: peer }),
    get: requestOf({ type: getValue, key }),
    put: requestOf({ type: putValue, key, record }),
  };

  test.each<[string, keyof typeof requests, KadMessage]>([
    ['peers', 'find', { type: findNode, key: peer, closerPeers: [{ id: peer, addrs: [] }] }],
    ['no peers', 'find', { type: findNode, key: peer }],
    ['a record', 'get', { type: getValue, key, record }],
    ['no record', 'get', { type: getValue, key }],
    ['the record, which acknowledges it', 'put', { type: putValue, key, record }],
    ['no record: not accepted', 'put', { type: putValue, key }],
  ])('%s is a reply to %s', (_name, request, reply) => {
    expect(refusal(() => checkKadReply(requests[request], reply))).toBeUndefined();
  });

  test.each<[string, keyof typeof requests, KadMessage, RegExp]>([
    ['another type', 'get', { type: findNode, key }, /^message\.type/],
    ['another key', 'get', { type: getValue, key: key.with(31, 0) }, /^message\.key/],
    ['a mapped key', 'get', { type: getValue, key: primitives.sha256(key) }, /^message\.key/],
    ['no key', 'get', { type: getValue }, /^message\.key/],
    ['a record', 'find', { type: findNode, key: peer, record: {} }, /^message\.record: not/],
    [
      'a record of another key',
      'get',
      { type: getValue, key, record: { key: key.with(0, 0), value } },
      /^message\.record\.key/,
    ],
    ['a record without a key', 'get', { type: getValue, key, record: { value } }, /record\.key/],
    ['a record without a value', 'get', { type: getValue, key, record: { key } }, /record\.value/],
    [
      'another value',
      'put',
      { type: putValue, key, record: { key, value: value.with(0, 0) } },
      /^message\.record\.value/,
    ],
    ['a shorter value', 'put', { type: putValue, key, record: { key } }, /record\.value/],
  ])('%s is no reply to %s', (_name, request, reply, expected) => {
    expect(refusal(() => checkKadReply(requests[request], reply))).toMatch(expected);
  });

  test('candidates: malformed and repeated peers are dropped, so are useless addresses', () => {
    const tcp = '/ip4/192.0.2.1/tcp/4201';
    const closerPeers = [
      { id: fromHex('0102'), addrs: [binary(tcp)] },
      {
        id: peerOf(1),
        addrs: [
          binary(tcp),
          fromHex('04c0000201910204d2'),
          binary(`${tcp}/p2p/12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA`),
        ],
      },
      { id: peerOf(1), addrs: [binary('/ip4/192.0.2.2/tcp/1')] },
      {
        id: peer,
        addrs: [binary(`${tcp}/p2p/12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA`)],
      },
      { id: peerOf(2), addrs: [] },
    ];
    const candidates = kadCandidates({ type: findNode, key, closerPeers });
    expect(
      candidates.map(({ peerId, addresses }) => [hex(peerId), addresses.map(formatMultiaddr)]),
    ).toEqual([
      [hex(peerOf(1)), [tcp]],
      [hex(peer), [`${tcp}/p2p/12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA`]],
      [hex(peerOf(2)), []],
    ]);
    expect(kadCandidates({ type: findNode, key })).toEqual([]);
  });
});
