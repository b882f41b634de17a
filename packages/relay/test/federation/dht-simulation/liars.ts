/** What relays answer that are admitted, and lie. */
import { utf8 } from '@posthouse/protocol';
import {
  compareNearness,
  dhtPosition,
  type KadMessage,
  type KadRequest,
  kadTypes,
  peerIdOfKey,
} from '@posthouse/protocol/federation';
import { parseJson } from '@posthouse/protocol/json';
import { nodePrimitives as primitives } from '@posthouse/protocol/node';
import type { Chance } from '../../simulation/machine/chance.ts';

/**
 * - `silent`: never answers;
 * - `invents`: names peers near the key that do not exist;
 * - `replays`: returns the first route that it saw of an account;
 * - `forges`: returns the newest route with a higher revision;
 * - `echoes`: acknowledges every record, stores none, and names liars only.
 */
export const lies = ['silent', 'invents', 'replays', 'forges', 'echoes'] as const;
export type Lie = (typeof lies)[number];

/** Peers that one answer names. */
const named = 20;
/** Peers that are invented in one simulation. */
const inventedPeers = 300;

interface Peer {
  readonly peerId: Uint8Array;
  readonly position: Uint8Array;
}

const peerOf = (peerId: Uint8Array): Peer => ({
  peerId,
  position: dhtPosition(primitives, peerId),
});

/** What all liars of a simulation know together. */
export class Liars {
  readonly #invented: readonly Peer[];
  readonly #liars: Peer[] = [];
  /** First and newest route seen, by DHT key in hex. */
  readonly #first = new Map<string, Uint8Array>();
  readonly #newest = new Map<string, Uint8Array>();

  constructor(chance: Chance) {
    this.#invented = Array.from({ length: inventedPeers }, () =>
      peerOf(peerIdOfKey(primitives, { type: 'ed25519', data: chance.bytes(32) })),
    );
  }

  join(peerId: Uint8Array): void {
    this.#liars.push(peerOf(peerId));
  }

  /** Answers as a liar does. */
  async answer(lie: Lie, request: KadRequest): Promise<KadMessage> {
    const { type, key } = request;
    const id = Buffer.from(key).toString('hex');
    if (lie === 'silent') return await new Promise<never>(() => {});
    const peers = lie === 'echoes' ? this.#liars : this.#invented;
    const closerPeers = nearest(peers, key).map((peer) => ({ id: peer, addrs: [] }));
    if (request.type === kadTypes.putValue) {
      const { value } = request.record;
      if (!this.#first.has(id)) this.#first.set(id, value);
      this.#newest.set(id, value);
      const isEchoed = lie === 'echoes' || lie === 'replays';
      return { type, key, ...(isEchoed && { record: request.record }) };
    }
    const value = type === kadTypes.getValue ? this.#value(lie, id) : undefined;
    return { type, key, closerPeers, ...(value && { record: { key, value } }) };
  }

  #value(lie: Lie, id: string): Uint8Array | undefined {
    if (lie === 'replays') return this.#first.get(id);
    const newest = lie === 'forges' ? this.#newest.get(id) : undefined;
    if (newest === undefined) return undefined;
    const route = parseJson(Buffer.from(newest).toString()) as { revision: number };
    return utf8(JSON.stringify({ ...route, revision: route.revision + 1_000 }));
  }
}

function nearest(peers: readonly Peer[], key: Uint8Array): Uint8Array[] {
  const target = dhtPosition(primitives, key);
  return peers
    .toSorted((a, b) => compareNearness(target, a.position, b.position))
    .slice(0, named)
    .map(({ peerId }) => peerId);
}
