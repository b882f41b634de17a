/** Vectors of what relays are to each other: peer keys, handshakes (07 §B2, §B3). */
import { concatBytes } from '../../src/encoding/bytes.ts';
import { encodeBytesField, encodeVarintField } from '../../src/encoding/protobuf.ts';
import {
  encodeHandshakePayload,
  encodePeerKey,
  formatPeerId,
  handshakeSigningInput,
  type PeerKey,
  peerIdOfKey,
} from '../../src/federation/index.ts';
import { deriveRelayId, fromHex, hex, utf8 } from '../../src/index.ts';
import { canonicalJson, type JsonObject } from '../../src/json/index.ts';
import { ann, counting, network, relayKey, signedBy, VectorFile } from './fixture.ts';

const { primitives } = network;
const peerSeed = counting(0x11);
const peerKey: PeerKey = { type: 'ed25519', data: primitives.ed25519.publicKey(peerSeed) };
export const peerId = peerIdOfKey(primitives, peerKey);
const identityKey = encodePeerKey(peerKey);

/** Data of keys of the other kinds; their private keys were thrown away. */
const otherKeys = {
  rsa:
    '30820122300d06092a864886f70d01010105000382010f003082010a0282010100cb78e42b5dcbc331e5c64b' +
    'c97595b917ac89afc85f07325fddd9812abc849d0dff8ffa0b09bfc7b6d8e2ab4d29524fc5f9057536453d3f' +
    '8f6580f91e066a7e2508dc4d7f92b0308d6f169265468b01ca40c69ff522eafbdbcab9fa939078e85e27c9b0' +
    '8bb9bb311dcaca62566e9e0569d2fb46fd56f838ae4b2e4d31b2a4f4e77030311fc82253cf5bb4b7d2d49418' +
    'bc924cdacbf41c01dd9314dcf5ac65a4a94dad2207888684f4b682689bf9c9d9e4c19c175f72d0701ff8d2ec' +
    'cec4281e507262a1c6048d5c6050a738f1c09f74d2af85442718ec529aafd4261f516a54c651cd9f14b71cda' +
    'cffcb37afde851af9d77cdc3843b133d10775b04467be97f950203010001',
  secp256k1: '02b74f72eb8705ac1ea56228dcde8a77886f15229c1fb7b6f3c6a1a0831c469a46',
  ecdsa:
    '3059301306072a8648ce3d020106082a8648ce3d030107034200049908f347a5ffe54108321bc20edbe0cbfe' +
    '3d154fc68d6f3b129f6bad352dd9e6e390de5f407eff12b75f2fc4852172eb5bb7257acd3bbb9eb4044af3e8' +
    'd28b31',
} as const;

export const bytes = (...parts: (Uint8Array | string)[]) =>
  hex(concatBytes(...parts.map((part) => (typeof part === 'string' ? fromHex(part) : part))));

export function peerKeyVectors(): VectorFile {
  const file = new VectorFile('Peer keys and Peer IDs', '01 §13.2; 07 §B2, §B3');
  const operation = 'peer_key.decode';
  const data = hex(peerKey.data);
  const rsa = fromHex(otherKeys.rsa);
  const encoded = {
    ed25519: identityKey,
    rsa: encodePeerKey({ type: 'rsa', data: rsa }),
    secp256k1: encodePeerKey({ type: 'secp256k1', data: fromHex(otherKeys.secp256k1) }),
    ecdsa: encodePeerKey({ type: 'ecdsa', data: fromHex(otherKeys.ecdsa) }),
  };
  for (const [name, key] of Object.entries(encoded)) file.valid(name, operation, { hex: hex(key) });
  for (const [name, hex] of [
    ['data before type', `1220${data}0801`],
    ['a type in a longer form', `0881001220${data}`],
    ['the last value of a field counts', `08031200${bytes(identityKey)}`],
    ['unknown fields are ignored', `180722010125010203042b08012c${bytes(identityKey)}`],
  ] as const) {
    file.valid(name, operation, { hex });
  }
  for (const [name, hex] of [
    ['nothing', ''],
    ['no type', `1220${data}`],
    ['no data', '0801'],
    ['an unknown type', `08041220${data}`],
    ['type as bytes', `0a01011220${data}`],
    ['data as a varint', '08011001'],
    ['cut short', bytes(identityKey).slice(0, -2)],
    ['a byte too many', `${bytes(identityKey)}08`],
    ['wire type 7', `${bytes(identityKey)}1f`],
    ['field number 0', `${bytes(identityKey)}0000`],
    ['Ed25519: 31 bytes', `0801121f${data.slice(2)}`],
    ['Ed25519: 33 bytes', `08011221${data}00`],
    ['secp256k1: not compressed', `08021221${'04'.repeat(33)}`],
    ['an RSA key called ECDSA', bytes(encodeVarintField(1, 3), encodeBytesField(2, rsa))],
    ['RSA: cut short', bytes(encodeVarintField(1, 0), encodeBytesField(2, rsa.subarray(0, -1)))],
    ['RSA: 1,024 bits', bytes(encodeVarintField(1, 0), encodeBytesField(2, rsaOf(1_024)))],
    ['RSA: 2,047 bits', bytes(encodeVarintField(1, 0), encodeBytesField(2, rsaOf(2_047)))],
    ['RSA: 8,193 bits', bytes(encodeVarintField(1, 0), encodeBytesField(2, rsaOf(8_193)))],
  ] as const) {
    file.invalid(name, operation, { hex });
  }
  for (const key of Object.values(encoded)) {
    const digest = primitives.sha256(key);
    const short = key.length <= 42;
    const id = formatPeerId(
      short ? fromHex(bytes(Uint8Array.of(0, key.length), key)) : fromHex(`1220${hex(digest)}`),
    );
    file.valid(`Peer ID ${id}`, 'peer_id.parse', { peer_id: id });
  }
  for (const peer_id of ['', 'relay', formatPeerId(peerId).slice(1), `${formatPeerId(peerId)}1`]) {
    file.invalid(`Peer ID ${JSON.stringify(peer_id)}`, 'peer_id.parse', { peer_id });
  }
  return file;
}

/** DER of an RSA key with a modulus of so many bits, which is no product of two primes. */
function rsaOf(bits: number): Uint8Array {
  const modulus = new Uint8Array(Math.ceil(bits / 8) + 1).fill(0xff);
  modulus[0] = 0;
  modulus[1] = 0xff >> ((modulus.length - 1) * 8 - bits);
  const integer = (modulus[1] as number) < 0x80 ? modulus.subarray(1) : modulus;
  const key = der(0x30, der(0x02, integer), fromHex('0203010001'));
  const algorithm = fromHex('300d06092a864886f70d0101010500');
  return der(0x30, algorithm, der(0x03, Uint8Array.of(0), key));
}

function der(tag: number, ...contents: readonly Uint8Array[]): Uint8Array {
  const inside = concatBytes(...contents);
  const { length } = inside;
  const head = length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return concatBytes(Uint8Array.of(tag, ...head), inside);
}

export function handshakeVectors(): VectorFile {
  const file = new VectorFile('Payload of Noise handshake messages', '07 §B3');
  const noiseKey = primitives.x25519.publicKey(counting(0x31));
  const noise_public_key_hex = hex(noiseKey);
  const sign = (key: Uint8Array) => primitives.ed25519.sign(peerSeed, handshakeSigningInput(key));
  const identitySignature = sign(noiseKey);
  const descriptor = canonicalJson(relayDescriptor());
  const payload = { identityKey, identitySignature, descriptor };
  const whole = encodeHandshakePayload(payload);
  const given = (...parts: (Uint8Array | string)[]) => ({
    hex: bytes(...parts),
    noise_public_key_hex,
  });
  const key = encodeBytesField(1, identityKey);
  const signature = encodeBytesField(2, identitySignature);
  const extension = (text: string) => encodeBytesField(1025, utf8(text));
  const extensions = (...fields: Uint8Array[]) => encodeBytesField(4, concatBytes(...fields));
  const good = extensions(extension(descriptor));
  const libp2p = concatBytes(
    encodeBytesField(1, counting(1)),
    encodeBytesField(2, utf8('/yamux/1.0.0')),
  );
  for (const [name, ...parts] of [
    ['a payload', whole],
    ['fields in another order', good, signature, key],
    ['the last value of a field counts', '0a0101', '12020102', extensions(extension('{}')), whole],
    ['extensions merge', key, signature, good, extensions(encodeVarintField(7, 1))],
    ['extensions of libp2p', key, signature, extensions(libp2p, extension(descriptor))],
    ['unknown fields are ignored', '1807', key, '2d01020304', signature, '2b08012c', good],
    ['a varint in a longer form', '188700', whole],
  ] as const) {
    file.valid(name, 'handshake.verify', given(...parts));
  }
  const otherSignature = sign(primitives.x25519.publicKey(counting(0x32)));
  const invalid = { error: 'invalid_signature' };
  for (const [name, changes] of [
    ['identity_sig of another Noise key', { identitySignature: otherSignature }],
    [
      'identity_sig of another peer',
      {
        identityKey: encodePeerKey({
          ...peerKey,
          data: primitives.ed25519.publicKey(ann.device.signingSeed),
        }),
      },
    ],
    ['identity_sig empty', { identitySignature: new Uint8Array() }],
  ] as const) {
    const bad = encodeHandshakePayload({ ...payload, ...changes });
    file.invalid(name, 'handshake.verify', given(bad), invalid);
  }
  file.valid('a text that is no descriptor: JSON is checked later', 'handshake.decode', {
    hex: bytes(key, signature, extensions(extension('no JSON'))),
  });
  for (const [name, ...parts] of [
    ['nothing'],
    ['no identity_key', signature, good],
    ['no identity_sig', key, good],
    ['no extensions', key, signature],
    ['no relay_descriptor', key, signature, extensions(libp2p)],
    ['identity_key as a varint', '0801', key, signature, good],
    ['identity_sig as a varint', key, '1001', signature, good],
    ['extensions as a varint', key, signature, '2001', good],
    ['relay_descriptor as a varint', key, signature, extensions(encodeVarintField(1025, 1)), good],
    [
      'relay_descriptor not UTF-8',
      key,
      signature,
      extensions(encodeBytesField(1025, fromHex('22ff22'))),
    ],
    ['malformed extensions', key, signature, good, extensions(fromHex('8a'))],
    ['a byte missing', bytes(whole).slice(0, -2)],
    ['a varint of 65 bits', whole, '18ffffffffffffffffff02'],
    ['a group that does not end', whole, '2b0801'],
    ['the end of a group that did not begin', whole, '2c'],
  ] as const) {
    file.invalid(name, 'handshake.decode', { hex: bytes(...parts) });
  }
  return file;
}

function relayDescriptor(): JsonObject {
  const facts = {
    $type: network.type('relay.descriptor'),
    relay_id: deriveRelayId(network, relayKey.publicKey),
    public_key: relayKey.publicKey,
    endpoints: [
      'https://relay.example.com/svc/v1',
      `/dns4/relay.example.com/tcp/4201/p2p/${formatPeerId(peerId)}`,
    ],
    capabilities: [],
    expires_at: 1_767_225_600,
  };
  return signedBy(relayKey, facts, 'relay_signature');
}
