/** Faults of the relay DHT. */
import { type KadPeer, kadTypes, RoutingTable } from '@posthouse/protocol/federation';
import { nodePrimitives } from '@posthouse/protocol/node';
import { answeringFromMemory } from './calls.ts';
import { changingWire } from './questions.ts';
import { all, replace, type SeededFault } from './replace.ts';
import { answeringDht } from './streams.ts';

const { putValue, getValue, findNode } = kadTypes;
const keyOf = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString('hex');

/** Returns the first value of each key that a relay was sent, whatever came after. */
function servingFirstValues(): Disposable {
  const values = new Map<string, Uint8Array>();
  return answeringDht(({ type, key, record }) => {
    const name = keyOf(key);
    if (type === putValue && record?.value !== undefined && !values.has(name)) {
      values.set(name, record.value);
    }
    const value = type === getValue ? values.get(name) : undefined;
    if (key === undefined || value === undefined) return undefined;
    return Promise.resolve({ type, key, record: { key, value } });
  });
}

/** Names every peer once more that it named before. */
function namingForGood(): Disposable {
  const named = new Map<string, KadPeer>();
  return answeringDht(async (_request, honest) => {
    const reply = await honest();
    for (const peer of reply.closerPeers ?? []) named.set(keyOf(peer.id), peer);
    return { ...reply, closerPeers: [...named.values()] };
  });
}

/** Names the peers that the answers of others name. */
function namingCandidates(): Disposable {
  const candidates: KadPeer[] = [];
  return all(
    changingWire({
      reply: (reply) => {
        candidates.push(...(reply.closerPeers ?? []));
        return reply;
      },
    }),
    answeringDht(async (_request, honest) => {
      const reply = await honest();
      return { ...reply, closerPeers: [...candidates, ...(reply.closerPeers ?? [])] };
    }),
  );
}

const isJson = (bytes: Uint8Array | undefined) => {
  try {
    JSON.parse(Buffer.from(bytes ?? []).toString());
    return true;
  } catch {
    return false;
  }
};

export const dhtFaults: readonly SeededFault[] = [
  {
    fault: 'echoes a route without storing it',
    check: 'dht.routes/put',
    seed: () =>
      answeringDht((request) => (request.type === putValue ? Promise.resolve(request) : undefined)),
  },
  {
    fault: 'accepts a route below the highest revision',
    check: 'dht.routes/put-lower',
    seed: () =>
      answeringDht((request, honest) =>
        request.type === putValue
          ? honest().then((reply) => ({ ...reply, record: request.record }))
          : undefined,
      ),
  },
  {
    fault: 'returns an expired route',
    check: 'dht.routes/expires',
    seed: servingFirstValues,
  },
  {
    fault: 'returns one of two routes with the same revision',
    check: 'dht.routes/put-conflict',
    seed: servingFirstValues,
  },
  {
    fault: 'answers GET_VALUE with a key that is too short',
    check: 'dht.messages/refused-get-with-31-bytes',
    seed: () =>
      answeringDht(({ type, key }) =>
        type === getValue && key?.length === 31 ? Promise.resolve({ type, key }) : undefined,
      ),
  },
  {
    fault: 'serves an account on after it has left',
    check: 'dht.routes/leave',
    seed: () => answeringFromMemory('device.status'),
  },
  {
    fault: 'echoes a record that is no JSON',
    check: 'dht.messages/refused-value-with-no-json',
    seed: () =>
      answeringDht((request) =>
        request.type === putValue && !isJson(request.record?.value)
          ? Promise.resolve(request)
          : undefined,
      ),
  },
  {
    fault: 'answers one request on a stream',
    check: 'dht.messages/several-on-a-stream',
    seed: () => answeringDht((_request, honest) => honest(), { most: 1 }),
  },
  {
    fault: 'answers FIND_NODE for keys of 32 bytes alone',
    check: 'dht.peers/any-key-of-33-bytes',
    seed: () =>
      answeringDht(({ type, key }) =>
        type === findNode && key?.length !== 32
          ? Promise.reject(new TypeError('reset'))
          : undefined,
      ),
  },
  {
    fault: 'answers FIND_NODE with the record of the key',
    check: 'dht.peers/no-record',
    seed: () =>
      answeringDht(({ type, key }, honest) =>
        type === findNode && key !== undefined
          ? honest().then((reply) => ({ ...reply, record: { key, value: new Uint8Array([0x7b]) } }))
          : undefined,
      ),
  },
  {
    fault: 'names suspended relays on',
    check: 'dht.peers/forgets-suspended',
    seed: namingForGood,
  },
  {
    fault: 'names the old Peer ID of a relay in addition to the new one',
    check: 'dht.peers/rebinding',
    seed: namingForGood,
  },
];

/** Faults that show in a network of many relays, which stays so for the rest of a run. */
export const namingFaults: readonly SeededFault[] = [
  {
    fault: 'maps lookup inputs to other positions than the SHA-256 of their bytes',
    check: 'dht.peers/nearest',
    seed: () =>
      replace(
        RoutingTable.prototype,
        'closest',
        (original) =>
          function (this: RoutingTable, raw, count) {
            return original.call(this, nodePrimitives.sha256(raw), count);
          },
      ),
  },
  {
    fault: 'names peers that it has not authenticated',
    check: 'dht.candidates/past-invented-relays',
    seed: namingCandidates,
  },
];
