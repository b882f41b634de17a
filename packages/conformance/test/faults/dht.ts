/** Faults of the relay DHT. */
import { kadTypes } from '@posthouse/protocol/federation';
import { answeringFromMemory } from './calls.ts';
import type { SeededFault } from './replace.ts';
import { answeringDht } from './streams.ts';

const { putValue, getValue } = kadTypes;
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
];
