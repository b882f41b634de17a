import { expect, test } from 'vitest';
import { routeKeyInput } from '../../src/federation/keyspace.ts';
import { formatPeerId } from '../../src/identity/peer-id.ts';
import {
  deriveRouteKey,
  dhtDistance,
  dhtPosition,
  encodeBase64url,
  encodeFindNode,
  encodeFrame,
  fromHex,
  hex,
  parsePeerId,
  utf8,
} from '../../src/index.ts';
import { canonicalJson, type JsonObject } from '../../src/json/index.ts';
import { describeVectors } from './vectors.ts';

interface Keyspace {
  network_context: string;
  resource_key: {
    id: string;
    operation: string;
    input: { $type: string; resource_id: string };
    expected: Record<string, string>;
  };
  keyspace: {
    peers: {
      id: string;
      peer_id: string;
      bytes_hex: string;
      byte_length: number;
      keyspace_hex: string;
    }[];
    cases: {
      id: string;
      key_source: { peer?: string; vector_id?: string; value_ref?: string };
      key_hex: string;
      expected: {
        key_byte_length: number;
        target_position_hex: string;
        find_node_request_hex: string;
        framed_request_hex: string;
        response_key_hex: string;
        distances: { peer: string; xor_hex: string }[];
      };
    }[];
  };
}

describeVectors<Keyspace>(
  'dht-keyspace-v1',
  ({ data, network, resolve }) => {
    const net = network();
    const { primitives } = net;
    const peers = new Map(data.keyspace.peers.map((peer) => [peer.id, peer]));

    test(`${data.resource_key.id}: input and key`, () => {
      const { operation, input, expected } = data.resource_key;
      expect(operation).toBe('dht_resource_key');
      expect(input.$type).toBe(net.type('dht.resource.account.route'));
      const made: JsonObject = { ...input, $context: data.network_context };
      const bytes = routeKeyInput(net, input.resource_id);
      const key = deriveRouteKey(net, input.resource_id);
      expect({
        canonical_json: canonicalJson(made),
        utf8_hex: hex(bytes),
        utf8_base64: btoa(String.fromCharCode(...utf8(canonicalJson(made)))),
        sha256_hex: hex(primitives.sha256(bytes)),
        sha256_base64url: encodeBase64url(primitives.sha256(bytes)),
        expected_key_hex: hex(key),
        expected_key_base64url: encodeBase64url(key),
      }).toEqual(expected);
    });

    test.each(data.keyspace.peers)('peer $id: bytes and position', (peer) => {
      const bytes = fromHex(peer.bytes_hex);
      expect(parsePeerId(peer.peer_id)).toEqual(bytes);
      expect(formatPeerId(bytes)).toBe(peer.peer_id);
      expect(bytes.length).toBe(peer.byte_length);
      expect(hex(dhtPosition(primitives, bytes))).toBe(peer.keyspace_hex);
    });

    test.each(data.keyspace.cases)('case $id: request and distances', (one) => {
      const { peer, vector_id, value_ref } = one.key_source;
      const source = peer === undefined ? resolve(value_ref ?? '') : peers.get(peer)?.bytes_hex;
      expect(one.key_hex).toBe(source);
      if (peer === undefined) expect(vector_id).toBe(data.resource_key.id);
      const key = fromHex(one.key_hex);
      const request = encodeFindNode(key);
      const distances = one.expected.distances.map((to) => {
        const bytes = fromHex(peers.get(to.peer)?.bytes_hex ?? '');
        return { peer: to.peer, xor_hex: hex(dhtDistance(primitives, key, bytes)) };
      });
      expect({
        key_byte_length: key.length,
        target_position_hex: hex(dhtPosition(primitives, key)),
        find_node_request_hex: hex(request),
        framed_request_hex: hex(encodeFrame(request)),
        // The reply repeats the key of the request, which follows two tags and one length byte.
        response_key_hex: hex(request.subarray(4)),
        distances,
      }).toEqual(one.expected);
    });
  },
  { unused: { '/keyspace/sources': 'addresses of specifications' } },
);
