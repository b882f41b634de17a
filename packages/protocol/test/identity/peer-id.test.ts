import { base32nopad, base58 } from '@scure/base';
import { describe, expect, test } from 'vitest';
import { concatBytes } from '../../src/encoding/bytes.ts';
import { formatPeerId } from '../../src/identity/peer-id.ts';
import { ed25519KeyOfPeer, hex, parsePeerId, peerIdOf } from '../../src/index.ts';
import { counting } from './appendix.ts';

const text = '12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA';

/** A CID whose multihash would be right. */
const cidOf = (version: number, codec: number) =>
  `z${base58.encode(concatBytes(Uint8Array.of(version, codec), parsePeerId(text) ?? counting(0)))}`;

describe('01 §13.2: Peer IDs', () => {
  test('an Ed25519 Peer ID is the identity multihash of the protobuf key', () => {
    const id = peerIdOf(counting(1));
    expect(id).toMatch(/^12D3Koo[1-9A-HJ-NP-Za-km-z]{45}$/);
    expect(hex(parsePeerId(id) as Uint8Array)).toBe(`002408011220${hex(counting(1))}`);
    expect(ed25519KeyOfPeer(parsePeerId(id) as Uint8Array)).toEqual(counting(1));
  });

  test('a published Peer ID comes back from its key', () => {
    const multihash = parsePeerId(text) as Uint8Array;
    const key = ed25519KeyOfPeer(multihash) as Uint8Array;
    expect(key).toHaveLength(32);
    expect(peerIdOf(key)).toBe(text);
    expect(formatPeerId(multihash)).toBe(text);
  });

  test('a key of another length makes no Peer ID', () => {
    expect(() => peerIdOf(counting(1, 31))).toThrow(TypeError);
    expect(() => peerIdOf(counting(1, 33))).toThrow(TypeError);
  });

  test('both CID forms name the same peer', () => {
    const multihash = parsePeerId(text) as Uint8Array;
    const cid = concatBytes(Uint8Array.of(0x01, 0x72), multihash);
    expect(parsePeerId(`b${base32nopad.encode(cid).toLowerCase()}`)).toEqual(multihash);
    expect(parsePeerId(`z${base58.encode(cid)}`)).toEqual(multihash);
  });

  test('a SHA-256 multihash, of a key too long to be included itself, is a Peer ID', () => {
    const multihash = concatBytes(Uint8Array.of(0x12, 0x20), counting(5));
    const id = base58.encode(multihash);
    expect(id).toMatch(/^Qm/);
    expect(parsePeerId(id)).toEqual(multihash);
    expect(ed25519KeyOfPeer(multihash)).toBeUndefined();
  });

  test.each([
    ['', 'empty'],
    [text.slice(0, -1), 'cut short'],
    [`${text}A`, 'too long'],
    [text.replace('K', '0'), 'a character outside Base58'],
    [` ${text}`, 'white space'],
    ['relay', 'a word'],
    ['1'.repeat(52), 'zero bytes'],
    [base58.encode(concatBytes(Uint8Array.of(0x12, 0x1f), counting(5, 31))), 'a short digest'],
    [base58.encode(concatBytes(Uint8Array.of(0x00, 0x2b), counting(5, 43))), 'a long identity'],
    [cidOf(0x01, 0x70), 'another codec'],
    [cidOf(0x02, 0x72), 'another version of CIDs'],
    ['b1', 'not base32'],
    [`Q${'m'.repeat(200)}`, 'longer than any Peer ID'],
  ])('%j is none: %s', (id) => {
    expect(parsePeerId(id)).toBeUndefined();
  });
});
