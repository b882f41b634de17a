import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { noblePrimitives as primitives } from '../../src/crypto/index.ts';
import {
  compareDistance,
  deriveRouteKey,
  dhtDistance,
  dhtPosition,
  encodeFindNode,
  encodeFrame,
  hex,
  Network,
  parsePeerId,
} from '../../src/index.ts';

const context = 'neo:860833102:0x00112233445566778899aabbccddeeff00112233';
const network = new Network({ context, primitives });
const account = 'neo:860833102:NYyxNvpALEX66F1QrykS5ZGktqRMxPb5MT';
const key = deriveRouteKey(network, account);
const peer = parsePeerId('12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA') as Uint8Array;

describe('07 §D1: the worked example', () => {
  test('the wire key, which is not mapped', () => {
    expect(hex(key)).toBe('d8109da229d2c3cdc4de85d5988607a878a9b6907846de679b108bd7de056080');
  });

  test('positions of key and peer, and the distance between them', () => {
    expect(hex(dhtPosition(primitives, key))).toBe(
      'a7fc5fb6de2883b7cb13291ac060a602a10331ccf41494153d505f27a06a8e53',
    );
    expect(hex(dhtPosition(primitives, peer))).toBe(
      'a9fb3b592b9e6cee5658eaf7de67433434163a081d97cc77e303b300c816251e',
    );
    expect(hex(dhtDistance(primitives, key, peer))).toBe(
      '0e0764eff5b6ef599d4bc3ed1e07e53695150bc4e9835862de53ec27687cab4d',
    );
  });

  test('FIND_NODE with its frame', () => {
    expect(hex(encodeFrame(encodeFindNode(key)))).toBe(`2408041220${hex(key)}`);
    expect(hex(encodeFrame(encodeFindNode(peer)))).toBe(`2a08041226${hex(peer)}`);
  });
});

describe('07 §B8: keys and distances', () => {
  test('another context, word or account gives another key', () => {
    const others = [
      deriveRouteKey(new Network({ context: context.replace('33', '44'), primitives }), account),
      deriveRouteKey(new Network({ context, word: 'other', primitives }), account),
      deriveRouteKey(network, 'neo:860833102:NUz6PKTAM7NbPJzkKJFNay3VckQtcDkgWo'),
    ];
    expect(others.map(hex)).not.toContain(hex(key));
  });

  test('to oneself it is zero, and there and back it is the same', () => {
    const raw = fc.uint8Array({ minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(raw, raw, (a, b) => {
        expect(dhtDistance(primitives, a, a)).toEqual(new Uint8Array(32));
        expect(dhtDistance(primitives, a, b)).toEqual(dhtDistance(primitives, b, a));
      }),
    );
  });

  test('distances order as numbers of 256 bits', () => {
    const distance = fc.uint8Array({ minLength: 32, maxLength: 32 });
    fc.assert(
      fc.property(distance, distance, (a, b) => {
        const difference = BigInt(`0x${hex(a)}`) - BigInt(`0x${hex(b)}`);
        const sign = difference === 0n ? 0 : difference < 0n ? -1 : 1;
        expect(Math.sign(compareDistance(a, b))).toBe(sign);
      }),
    );
    expect(compareDistance(key, key)).toBe(0);
  });

  test('07 §B7: a lookup input is not empty', () => {
    expect(() => encodeFindNode(new Uint8Array())).toThrow(TypeError);
  });
});
