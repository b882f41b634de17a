/** Vectors of streams between relays: frames, messages of the DHT, responses of RPC (07 §B6 to §C3). */
import { concatBytes } from '../../src/encoding/bytes.ts';
import { encodeBytesField, encodeVarintField } from '../../src/encoding/protobuf.ts';
import {
  encodeFrame,
  encodeKadMessage,
  encodeMultiaddr,
  formatPeerId,
  type KadMessage,
  kadTypes,
  parseMultiaddr,
  parsePeerId,
  peerIdOfKey,
  type TcpAddress,
} from '../../src/federation/index.ts';
import { deriveRouteKey, encodeVarint, fromHex, hex, Network, utf8 } from '../../src/index.ts';
import type { JsonObject } from '../../src/json/index.ts';
import { ann, counting, network, VectorFile } from './fixture.ts';

import { bytes, peerId } from './peers.ts';

const { primitives } = network;

export function frameVectors(): VectorFile {
  const file = new VectorFile('Frames of DHT and relay RPC streams', '01 §5.6; 07 §B6, §C2');
  const operation = 'frames.read';
  const read = (maximum: number, ...chunks_hex: string[]) => ({ chunks_hex, maximum });
  const long = hex(encodeFrame(counting(0, 300)));
  const most = 1_048_576;
  for (const [name, input] of [
    ['no bytes', read(most)],
    ['an empty chunk', read(most, '')],
    ['a frame', read(most, '0107')],
    ['an empty frame', read(most, '00')],
    ['three frames in one chunk', read(most, '010700020809')],
    ['a frame in chunks of one byte', read(most, '02', '', '08', '09')],
    ['a prefix of two bytes, cut', read(most, long.slice(0, 2), long.slice(2, 6), long.slice(6))],
    ['of the greatest length', read(2, '020809')],
  ] as const) {
    file.valid(name, operation, input);
  }
  const fault = (name: string, input: JsonObject, fault: string) =>
    file.exact(name, operation, input, { frames_hex: ['07'], fault });
  fault('a prefix that is not in shortest form', read(most, '01078100'), 'invalid');
  fault('zero in two bytes', read(most, '0107', '8000'), 'invalid');
  fault('a prefix of ten bytes', read(most, '0107ffffffffffffffffff01'), 'invalid');
  fault(
    'a ninth byte that does not end the prefix',
    read(most, `0107${'80'.repeat(9)}`),
    'invalid',
  );
  fault('a byte more than the maximum', read(most, '0107818040'), 'too-large');
  fault('2^40', read(most, '0107', '80', '8080808020'), 'too-large');
  fault('2^63-1', read(most, `0107${hex(encodeVarint(2n ** 63n - 1n))}`), 'too-large');
  fault('the end inside a prefix', read(most, '010780'), 'truncated');
  fault('the end after a prefix', read(most, '010701'), 'truncated');
  fault('the end inside a frame', read(most, '01070208'), 'truncated');
  return file;
}

const key = deriveRouteKey(network, ann.signer.account);
const value = utf8('{"a":1}');
const record = { key, value };
const address = (text: string) => encodeMultiaddr(parseMultiaddr(text) as TcpAddress);
const tcp = '/ip4/192.0.2.1/tcp/4201';

export function dhtVectors(): VectorFile {
  const file = new VectorFile('Keys, distances and addresses of the DHT', '07 §B6, §B8, §D1');
  const example = new Network({
    context: 'neo:860833102:0x00112233445566778899aabbccddeeff00112233',
    primitives,
  });
  const account = 'neo:860833102:NYyxNvpALEX66F1QrykS5ZGktqRMxPb5MT';
  file.valid('the key of 07 §D1', 'dht.route_key', { account }, example);
  file.valid('another account', 'dht.route_key', { account: ann.signer.account });
  const examplePeer = '12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA';
  const exampleKey = hex(deriveRouteKey(example, account));
  const distance = (key_hex: string, peer_id: string) => ({ key_hex, peer_id });
  file.valid('the distance of 07 §D1', 'dht.distance', distance(exampleKey, examplePeer));
  const own = hex(parsePeerId(examplePeer) as Uint8Array);
  file.valid('of a peer to itself', 'dht.distance', distance(own, examplePeer));
  file.valid('of a peer to another', 'dht.distance', distance(own, formatPeerId(peerId)));
  for (const text of [
    tcp,
    '/ip6/2001:db8::1/tcp/443',
    '/ip6/::/tcp/1',
    '/dns/relay.example.com/tcp/443',
    '/dns4/relay.example.com/tcp/443',
    '/dns6/relay.example.com/tcp/443',
    '/dnsaddr/relay.example.com/tcp/65535',
    `${tcp}/p2p/${examplePeer}`,
  ]) {
    file.valid(`encode ${text}`, 'multiaddr.encode', { text });
    file.valid(`decode ${text}`, 'multiaddr.decode', { hex: hex(address(text)) });
  }
  for (const [name, hex] of [
    ['nothing', ''],
    ['no port', '04c0000201'],
    ['a byte of a port', '04c00002010610'],
    ['port 0', '04c0000201060000'],
    ['UDP', '04c000020191021069'],
    ['TLS on TCP', '04c0000201061069c003'],
    ['a malformed Peer ID', `04c0000201061069a50324${'00'.repeat(36)}`],
    ['a relayed address', `${bytes(address(`${tcp}/p2p/${examplePeer}`))}a202`],
    ['a code that is not in shortest form', '8400c0000201061069'],
    ['an empty name', '3500061069'],
    ['a name with a slash', '3503612f62061069'],
    ['a name that is not UTF-8', '3502ff61061069'],
  ] as const) {
    file.invalid(`decode: ${name}`, 'multiaddr.decode', { hex });
  }
  return file;
}

export function kadVectors(): VectorFile {
  const file = new VectorFile('Messages of the DHT', '07 §B6, §B7');
  const { putValue, getValue, findNode } = kadTypes;
  const encode = (message: KadMessage) => bytes(encodeKadMessage(message));
  const request = (name: string, message: KadMessage) =>
    file.valid(name, 'kad.request', { hex: encode(message) });
  request('FIND_NODE of a key', { type: findNode, key });
  request('FIND_NODE of a Peer ID', { type: findNode, key: peerId });
  request('GET_VALUE', { type: getValue, key });
  request('PUT_VALUE, with type 0 written', { type: putValue, key, record });
  const put = encode({ type: putValue, key, record });
  const parts = [encodeVarintField(1, 5), encodeBytesField(2, value)];
  const ignored = concatBytes(encodeBytesField(9, value), encodeVarintField(10, 3));
  const split = [
    encodeBytesField(3, encodeBytesField(1, key)),
    encodeBytesField(3, encodeBytesField(2, value)),
  ];
  file.valid('the last value of a field counts', 'kad.decode', { hex: bytes(...parts, put) });
  file.valid('unknown fields are ignored', 'kad.decode', { hex: bytes(ignored, put) });
  file.valid('a record in two parts merges', 'kad.decode', {
    hex: bytes(encodeVarintField(1, 0), encodeBytesField(2, key), ...split),
  });
  file.valid('PING, a type without a meaning', 'kad.decode', { hex: '0805' });
  for (const [name, hex] of [
    ['nothing', ''],
    ['no type', bytes(encodeBytesField(2, key))],
    ['type as bytes', '0a0104'],
    ['key as a varint', '08041001'],
    ['record as a varint', '08001801'],
    ['a malformed record', '08001a010a'],
    ['a malformed peer', '080442010a'],
    ['a byte missing', put.slice(0, -2)],
  ] as const) {
    file.invalid(name, 'kad.decode', { hex });
  }
  const short = key.subarray(1);
  for (const [name, message] of [
    ['ADD_PROVIDER', { type: 2, key }],
    ['PING is no request', { type: 5 }],
    ['FIND_NODE without a key', { type: findNode }],
    ['FIND_NODE of an empty key', { type: findNode, key: new Uint8Array() }],
    ['FIND_NODE with a record', { type: findNode, key, record }],
    ['GET_VALUE of 31 bytes', { type: getValue, key: short }],
    ['GET_VALUE with a record', { type: getValue, key, record }],
    ['PUT_VALUE of 31 bytes', { type: putValue, key: short, record: { key: short, value } }],
    ['PUT_VALUE without a record', { type: putValue, key }],
    ['PUT_VALUE of another key', { type: putValue, key, record: { key: key.with(0, 0), value } }],
    ['PUT_VALUE without record.key', { type: putValue, key, record: { value } }],
    ['PUT_VALUE without record.value', { type: putValue, key, record: { key } }],
  ] as const) {
    file.invalid(name, 'kad.request', { hex: encode(message) });
  }
  replies(file, encode);
  return file;
}

function replies(file: VectorFile, encode: (message: KadMessage) => string): void {
  const { putValue, getValue, findNode } = kadTypes;
  const requests = {
    find: encode({ type: findNode, key: peerId }),
    get: encode({ type: getValue, key }),
    put: encode({ type: putValue, key, record }),
  };
  const reply = (request: keyof typeof requests, message: KadMessage) => ({
    request_hex: requests[request],
    hex: encode(message),
  });
  const other = peerIdOfKey(primitives, { type: 'ed25519', data: counting(0x51) });
  const closerPeers = [
    { id: other, addrs: [address(tcp), address('/dns4/relay.example.com/tcp/443')] },
    {
      id: peerId,
      addrs: [fromHex('04c000020191021069'), address(`${tcp}/p2p/${formatPeerId(other)}`)],
    },
    { id: other, addrs: [] },
    { id: fromHex('0102'), addrs: [address(tcp)] },
  ];
  for (const [name, input] of [
    ['peers', reply('find', { type: findNode, key: peerId, closerPeers })],
    ['no peers', reply('find', { type: findNode, key: peerId })],
    ['a record', reply('get', { type: getValue, key, record, closerPeers })],
    ['no record', reply('get', { type: getValue, key, closerPeers })],
    ['the record echoed', reply('put', { type: putValue, key, record })],
    ['not accepted', reply('put', { type: putValue, key })],
  ] as const) {
    file.valid(`reply: ${name}`, 'kad.reply', input);
  }
  const changed = { key, value: utf8('{"a":2}') };
  for (const [name, input] of [
    ['another type', reply('get', { type: findNode, key })],
    ['another key', reply('get', { type: getValue, key: key.with(0, 0) })],
    ['the mapped key', reply('get', { type: getValue, key: primitives.sha256(key) })],
    ['no key', reply('get', { type: getValue })],
    [
      'a record for FIND_NODE',
      reply('find', { type: findNode, key: peerId, record: { key: peerId, value } }),
    ],
    [
      'a record of another key',
      reply('get', { type: getValue, key, record: { key: key.with(0, 0), value } }),
    ],
    ['a record without a value', reply('get', { type: getValue, key, record: { key } })],
    ['another record than sent', reply('put', { type: putValue, key, record: changed })],
  ] as const) {
    file.invalid(`reply: ${name}`, 'kad.reply', input);
  }
}

export function relayRpcVectors(): VectorFile {
  const file = new VectorFile('Responses of relay RPC', '07 §C3, §C9');
  const operation = 'relay_rpc.response';
  const read = (text: string, id: string | number = 1) => ({ text, id });
  const error = (members: string) => `{"jsonrpc":"2.0","id":1,"error":${members}}`;
  const limited = (data: string) => error(`{"code":-32030,"message":"slow down","data":${data}}`);
  for (const [name, input] of [
    ['a result', read('{"jsonrpc":"2.0","id":1,"result":{"status":"inactive"}}')],
    ['a text id', read('{"jsonrpc":"2.0","id":"a-9","result":{}}', 'a-9')],
    ['an error', read(error('{"code":-32021,"message":"moved"}'))],
    ['an error code that is not in the catalogue', read(error('{"code":-32099,"message":""}'))],
    ['retry_after', read(limited('{"retry_after":3}'))],
    ['data without retry_after', read(limited('{"zz":3}'))],
    ['unknown members', read('{"zz":[0],"jsonrpc":"2.0","id":1,"result":{}}')],
  ] as const) {
    file.valid(name, operation, input);
  }
  const invalid = (name: string, input: JsonObject) =>
    file.invalid(name, operation, input, { error: 'bad_gateway' });
  for (const [name, text] of [
    ['not JSON', '{"jsonrpc":"2.0"'],
    ['a batch', '[{"jsonrpc":"2.0","id":1,"result":{}}]'],
    ['J4: a repeated name', '{"jsonrpc":"2.0","id":1,"id":1,"result":{}}'],
    ['J6: a fraction', '{"jsonrpc":"2.0","id":1,"result":{"a":1.5}}'],
    ['another version', '{"jsonrpc":"1.0","id":1,"result":{}}'],
    ['id missing', '{"jsonrpc":"2.0","result":{}}'],
    ['another id', '{"jsonrpc":"2.0","id":2,"result":{}}'],
    ['the id as a text', '{"jsonrpc":"2.0","id":"1","result":{}}'],
    ['id null', '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":""}}'],
    ['neither result nor error', '{"jsonrpc":"2.0","id":1}'],
    [
      'result and error',
      '{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":-32010,"message":""}}',
    ],
    ['an error without a code', error('{"message":""}')],
    ['an error without a message', error('{"code":-32010}')],
    ['an error that is a text', error('"not_found"')],
    ['data that is no object', limited('[3]')],
    ['retry_after negative', limited('{"retry_after":-1}')],
    ['retry_after as a text', limited('{"retry_after":"3"}')],
  ] as const) {
    invalid(name, read(text));
  }
  return file;
}
