/** The reader of the registry contract, against nodes at real sockets. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  ChainRegistry,
  type ChainRegistryOptions,
  Network,
  ProtocolError,
  type RegistryErrorCode,
  type RelayEntry,
} from '../../src/index.ts';
import { nodePrimitives } from '../../src/node/primitives.ts';
import { FakeNode } from './fake-node.ts';
import { nodePost } from './node-post.ts';

const context = `neo:860833102:0x${'5a'.repeat(20)}`;
const network = new Network({ context, primitives: nodePrimitives });
const id = (number: number) => `0x${String(number).padStart(40, '0')}`;
const endpoint = (number: number) => `https://relay${number}.example/svc/v1`;

let parts: AsyncDisposableStack;
let node: FakeNode;
let post: ChainRegistryOptions['post'];
beforeEach(async () => {
  parts = new AsyncDisposableStack();
  node = parts.use(await FakeNode.start(context));
  ({ post } = parts.use(nodePost()));
});
afterEach(() => parts.disposeAsync());

const reader = (options: Partial<ChainRegistryOptions> = {}) =>
  new ChainRegistry({ network, nodes: [node.url], post, ...options });

/** Registers relays on the chain, free of charge. */
function register(...numbers: readonly number[]): void {
  const { contract } = node;
  contract.fee = 0;
  for (const number of numbers) {
    const relayId = id(number);
    const signers = [{ account: relayId, scopes: 'CalledByEntry' }];
    const args = [relayId, endpoint(number)];
    expect(contract.execute({ method: 'registerRelay', args, signers })).toBe(true);
  }
}

const listed = async (registry: ChainRegistry, signal?: AbortSignal) => {
  const entries: RelayEntry[] = [];
  for await (const entry of registry.listRelays(signal)) entries.push(entry);
  return entries;
};
const ids = async (registry: ChainRegistry) => (await listed(registry)).map((one) => one.relay_id);

const rejects = async (reading: Promise<unknown>, code: RegistryErrorCode) =>
  await expect(reading).rejects.toMatchObject({ name: 'RegistryError', code });

describe('07 §A6: a record', () => {
  test.each([
    ['Struct', 'ByteString'],
    ['Array', 'Buffer'],
  ] as const)('is read from a %s of %s items', async (records, bytes) => {
    Object.assign(node, { records, bytes });
    register(1);
    expect(await reader().getRelay(id(1))).toEqual({
      relay_id: id(1),
      endpoint: endpoint(1),
      status: 'active',
      updated_at: 1_750_000_000_000,
    });
  });

  test('the relay ID is written in the opposite order of its bytes', async () => {
    node.contract.fee = 0;
    const relayId = '0xff3380fa8e020053f1d1274f428cd542438f06d5';
    const signers = [{ account: relayId, scopes: 'CalledByEntry' }];
    const args = [relayId, endpoint(1)];
    node.contract.execute({ method: 'registerRelay', args, signers });
    expect((await reader().getRelay(relayId))?.relay_id).toBe(relayId);
  });

  test('of a relay that was never registered is none', async () => {
    expect(await reader().getRelay(id(1))).toBeUndefined();
  });

  test('an ID in any other spelling is not asked for', async () => {
    for (const text of [id(1).slice(2), '0xFF3380fa8e020053f1d1274f428cd542438f06d5', '']) {
      await expect(reader().getRelay(text)).rejects.toBeInstanceOf(ProtocolError);
    }
    expect(node.asked).toEqual([]);
  });

  test('of another relay than asked for is a failed read', async () => {
    register(1, 2);
    node.tamper = (method, result) =>
      method === 'getRelay'
        ? { state: 'HALT', stack: [node.record(node.contract.records.get(id(2)) as never)] }
        : result;
    await rejects(reader().getRelay(id(1)), 'invalid_answer');
  });

  test('07 §A3: a record that breaks the rules is a failed read, at whatever node', async () => {
    register(1);
    const record = node.contract.records.get(id(1)) as never as object;
    const other = parts.use(await FakeNode.start(context, node.contract));
    for (const text of ['https://relay.example/?', 'https://a b', 'https://ex.example/\\']) {
      const bytes = new TextEncoder().encode(text);
      node.contract.records.set(id(1), { ...record, endpoint: bytes } as never);
      await rejects(reader({ nodes: [node.url, other.url] }).getRelay(id(1)), 'invalid_record');
    }
    const bytes = Uint8Array.of(...new TextEncoder().encode('https://'), 0xff);
    node.contract.records.set(id(1), { ...record, endpoint: bytes } as never);
    await rejects(reader().getRelay(id(1)), 'invalid_record');
    expect(other.asked).toEqual([]);
  });
});

describe('07 §A6: an answer that is none', () => {
  const halt = (item: unknown) => ({ state: 'HALT', stack: [item] }) as never;
  const bytes = (text: string, type = 'ByteString') => ({
    type,
    value: Buffer.from(text).toString('base64'),
  });
  const good = [
    { type: 'ByteString', value: Buffer.alloc(20).toString('base64') },
    bytes('https://relay.example'),
    bytes('active'),
    { type: 'Integer', value: '1' },
  ];
  const changed = (index: number, item: unknown) =>
    halt({ type: 'Struct', value: good.with(index, item as never) });

  test.each([
    ['FAULT', { state: 'FAULT', exception: 'at instruction 7', stack: [] }],
    ['no state', { stack: [{ type: 'Any' }] }],
    ['state in lower case', { state: 'halt', stack: [{ type: 'Any' }] }],
    ['no stack', { state: 'HALT' }],
    ['two items', { state: 'HALT', stack: [{ type: 'Any' }, { type: 'Any' }] }],
    ['a text', 'HALT'],
    ['null with a value', halt({ type: 'Any', value: 'x' })],
    ['a record of three items', halt({ type: 'Struct', value: good.slice(1) })],
    ['a record of five items', halt({ type: 'Struct', value: [...good, good[3]] })],
    ['a map', halt({ type: 'Map', value: good })],
    ['an ID of 19 bytes', changed(0, { type: 'ByteString', value: `${'A'.repeat(24)}AA==` })],
    ['an ID as text', changed(0, { type: 'String', value: id(0) })],
    ...['a*==', 'aaa', 'aa=', 'a===', 'aaaa====', '====', 'aa=a', 'ab==', 'a-aa', 'a_aa'].map(
      (value): [string, ReturnType<typeof changed>] => [
        `no base64: ${value}`,
        changed(1, { type: 'ByteString', value }),
      ],
    ),
    ['a text as integer', changed(3, bytes('1'))],
    ['a number as integer', changed(3, { type: 'Integer', value: 1 })],
    ['a negative integer', changed(3, { type: 'Integer', value: '-1' })],
    ['a leading zero', changed(3, { type: 'Integer', value: '01' })],
    ['an integer over 2^53 - 1', changed(3, { type: 'Integer', value: '9007199254740992' })],
  ])('%s is a failed read, never "no record"', async (name, result) => {
    node.tamper = (method, real) => (method === 'getRelay' ? (result as never) : real);
    const isFault = /FAULT|state/.test(name);
    await rejects(reader().getRelay(id(0)), isFault ? 'failed_execution' : 'invalid_answer');
  });

  test('the untouched record of these cases is read', async () => {
    node.tamper = (method, real) =>
      method === 'getRelay' ? halt({ type: 'Struct', value: good }) : real;
    expect(await reader().getRelay(id(0))).toMatchObject({ updated_at: 1 });
    node.tamper = (method, real) =>
      method === 'getRelay' ? changed(3, { type: 'Integer', value: '9007199254740991' }) : real;
    expect(await reader().getRelay(id(0))).toMatchObject({ updated_at: Number.MAX_SAFE_INTEGER });
  });

  test.each(['hang', 'cut', 'close', 'drip', 'huge', 'redirect', 'status'] as const)(
    'a node with the fate %s is unreachable',
    async (fate) => {
      const { post } = parts.use(nodePost(300));
      register(1);
      node.fate = (method) => (method === 'getRelay' ? fate : 'answer');
      await rejects(reader({ post }).getRelay(id(1)), 'unreachable');
      expect(node.asked.filter((method) => method === 'getRelay')).toHaveLength(1);
      if (fate === 'huge') expect(node.sentBytes).toBeLessThan(16 * 1024 * 1024);
    },
  );

  test('an answer to another request is refused', async () => {
    const wrong: ChainRegistryOptions['post'] = async (request) =>
      await post({ ...request, body: request.body.replace(/"id":[0-9]+/, '"id":99') });
    await rejects(reader({ post: wrong }).getRelay(id(1)), 'invalid_answer');
  });

  test('an answer with a name twice, as no strict parser accepts, is refused', async () => {
    const twice: ChainRegistryOptions['post'] = async (request) => {
      const answer = await post(request);
      const text = new TextDecoder().decode(answer.body).replace('{', '{"jsonrpc":"2.0",');
      return { ...answer, body: new TextEncoder().encode(text) };
    };
    await rejects(reader({ post: twice }).getRelay(id(1)), 'invalid_answer');
  });

  test('the error names origins and no path, which can contain a key', async () => {
    node.fate = () => 'status';
    const failure = await reader({ nodes: [`${node.url}/secret?key=secret`] })
      .getRelay(id(1))
      .catch(String);
    expect(failure).toContain(node.url);
    expect(failure).not.toContain('secret');
  });

  test('a text of the node is cut and has no control characters', async () => {
    node.tamper = (method, real) =>
      method === 'getRelay' ? { state: 'FAULT', exception: `\u001b[2J${'x'.repeat(1e4)}` } : real;
    const failure = (await reader().getRelay(id(1)).catch(String)) as string;
    expect(failure.length).toBeLessThan(500);
    expect(failure).not.toContain('\u001b');
  });

  test('the signal ends a read with its reason', async () => {
    node.fate = () => 'hang';
    const leaving = new AbortController();
    const reading = reader().getRelay(id(1), leaving.signal);
    leaving.abort(new Error('no more time'));
    await expect(reading).rejects.toThrow('no more time');
  });
});

describe('07 §A2: the network magic', () => {
  test('is checked before the first answer, not again on the same connection', async () => {
    register(1);
    const registry = reader();
    await registry.getRelay(id(1));
    await registry.getRelay(id(1));
    expect(node.asked).toEqual(['getversion', 'getRelay', 'getRelay']);
  });

  test('of another network makes the node unusable, and nothing else is asked', async () => {
    node.magic += 1;
    await rejects(reader().getRelay(id(1)), 'wrong_network');
    await rejects(listed(reader()), 'wrong_network');
    expect(node.asked).toEqual(['getversion', 'getversion']);
  });

  test('is checked again on a new connection, before the answer is used', async () => {
    register(1);
    node.keepsConnections = false;
    const registry = reader();
    expect(await registry.getRelay(id(1))).toMatchObject({ status: 'active' });
    expect(node.asked).toEqual(['getversion', 'getRelay', 'getversion']);
    node.tamper = (method, result) => {
      if (method === 'getRelay') node.magic += 1;
      return result;
    };
    await rejects(registry.getRelay(id(1)), 'wrong_network');
    await rejects(registry.getRelay(id(1)), 'wrong_network');
    expect(node.asked.slice(3)).toEqual(['getRelay', 'getversion', 'getversion']);
  });

  test('is checked again after a failed read', async () => {
    const registry = reader();
    await registry.getRelay(id(1));
    node.fate = (method) => (method === 'getRelay' ? 'status' : 'answer');
    await rejects(registry.getRelay(id(1)), 'unreachable');
    node.fate = () => 'answer';
    node.asked.length = 0;
    await registry.getRelay(id(1));
    expect(node.asked).toEqual(['getversion', 'getRelay']);
  });

  test('is checked for each read if the platform does not tell new connections', async () => {
    const blind: ChainRegistryOptions['post'] = async (request) => {
      const { status, body } = await post(request);
      return { status, body };
    };
    const registry = reader({ post: blind });
    await registry.getRelay(id(1));
    node.magic += 1;
    await rejects(registry.getRelay(id(1)), 'wrong_network');
    expect(node.asked).toEqual(['getversion', 'getRelay', 'getversion']);
  });

  test('as a text or missing is refused', async () => {
    for (const network of ['860833102', undefined]) {
      node.tamper = (method, real) =>
        method === 'getversion' ? ({ protocol: { network } } as never) : real;
      await rejects(reader().getRelay(id(1)), 'invalid_answer');
    }
  });
});

describe('07 §A6: the list', () => {
  test.each(['sessions', 'inline'] as const)('is read whole with %s', async (iterators) => {
    node.iterators = iterators;
    const numbers = Array.from({ length: 250 }, (_, index) => index);
    register(...numbers);
    expect(await ids(reader())).toEqual(numbers.map(id));
    expect(node.sessions.size).toBe(0);
  });

  test('an empty list is no error', async () => {
    for (const iterators of ['sessions', 'inline'] as const) {
      node.iterators = iterators;
      expect(await listed(reader())).toEqual([]);
    }
  });

  test.each(['truncated', 'no session'] as const)(
    'of a node with lists %s is a failed read',
    async (iterators) => {
      node.iterators = iterators;
      register(1);
      await rejects(listed(reader()), 'incomplete_list');
      expect(await reader().getRelay(id(1))).toBeDefined();
    },
  );

  test('is asked for in parts of 100 and ends with an empty part only', async () => {
    node.returns = 30;
    register(...Array.from({ length: 70 }, (_, index) => index));
    expect(await ids(reader())).toHaveLength(70);
    const parts = node.asked.filter((method) => method === 'traverseiterator');
    expect(parts).toHaveLength(4);
    expect(node.asked.at(-1)).toBe('terminatesession');
  });

  test('is asked for in smaller parts if the node tells its cap', async () => {
    node.cap = 20;
    node.tellsCap = true;
    register(...Array.from({ length: 50 }, (_, index) => index));
    expect(await ids(reader())).toHaveLength(50);
    node.tellsCap = false;
    await rejects(listed(reader()), 'failed_execution');
  });

  test('a session is ended after a failed part too', async () => {
    register(1);
    node.fate = (method) => (method === 'traverseiterator' ? 'status' : 'answer');
    await rejects(listed(reader()), 'unreachable');
    expect(node.sessions.size).toBe(0);
    node.iterators = 'sessions';
    node.fate = () => 'answer';
    node.tamper = (method, result) => (method === 'traverseiterator' ? { items: [] } : result);
    await rejects(listed(reader()), 'invalid_answer');
    expect(node.sessions.size).toBe(0);
  });

  test('a session that expired meanwhile is a failed read', async () => {
    register(...Array.from({ length: 150 }, (_, index) => index));
    node.tamper = (method, result) => {
      if (method === 'traverseiterator') node.sessions.clear();
      return result;
    };
    await rejects(listed(reader()), 'failed_execution');
  });

  test('a part with more items than asked for is refused', async () => {
    register(1);
    node.tamper = (method, result, params) => {
      if (method !== 'traverseiterator') return result;
      const item = node.record(node.contract.records.get(id(1)) as never);
      return Array.from({ length: Number(params[2]) + 1 }, () => item);
    };
    await rejects(listed(reader()), 'invalid_answer');
  });

  test('07 §A3: malformed records are skipped and counted', async () => {
    register(1, 2, 3);
    const record = node.contract.records.get(id(2)) as never as object;
    const bytes = new TextEncoder().encode('https://relay.example/#x');
    node.contract.records.set(id(2), { ...record, endpoint: bytes } as never);
    const seen: unknown[] = [];
    const observer = { malformed: (...facts: unknown[]) => void seen.push(facts) };
    expect(await ids(reader({ observer }))).toEqual([id(1), id(3)]);
    expect(seen).toEqual([[node.url, 1]]);
  });

  test('07 §B5: a relay twice in one list is returned twice, for the caller to leave out', async () => {
    register(1, 2);
    node.tamper = (method, result) =>
      method === 'traverseiterator' && Array.isArray(result) ? [...result, ...result] : result;
    expect(await ids(reader())).toEqual([id(1), id(2), id(1), id(2)]);
  });

  test('an endless iterator ends at the limit of items, its session too', async () => {
    register(1);
    const item = () => node.record(node.contract.records.get(id(1)) as never);
    node.tamper = (method, result, params) =>
      method === 'traverseiterator' ? Array.from({ length: Number(params[2]) }, item) : result;
    expect(await ids(reader({ limits: { listItems: 1_000 } }))).toHaveLength(1_000);
    expect(node.asked.filter((method) => method === 'traverseiterator')).toHaveLength(10);
    expect(node.sessions.size).toBe(0);
  });

  test('an inline list is read to the limit of items, malformed ones counted', async () => {
    node.iterators = 'inline';
    register(...Array.from({ length: 30 }, (_, index) => index));
    expect(await ids(reader({ limits: { listItems: 29 } }))).toHaveLength(29);
    expect(await ids(reader({ limits: { listItems: 30 } }))).toHaveLength(30);
    expect(await ids(reader({ limits: { listItems: 31 } }))).toHaveLength(30);
  });

  test('an iterator of endless small parts ends at the limit of requests', async () => {
    node.tamper = (method, result) => (method === 'traverseiterator' ? [null] : result);
    await rejects(listed(reader({ limits: { listRequests: 25 } })), 'incomplete_list');
    expect(node.asked.filter((method) => method === 'traverseiterator')).toHaveLength(25);
    node.asked.length = 0;
    expect(await listed(reader({ limits: { listItems: 25 } }))).toEqual([]);
    expect(node.asked.filter((method) => method === 'traverseiterator')).toHaveLength(25);
  });

  test('an answer over the limit of bytes is refused while it arrives', async () => {
    node.fate = (method) => (method === 'listRelays' ? 'huge' : 'answer');
    await rejects(listed(reader()), 'unreachable');
    expect(node.sentBytes).toBeLessThan(32 * 1024 * 1024);
  });

  test('nothing is yielded of a list that was cut off', async () => {
    register(...Array.from({ length: 150 }, (_, index) => index));
    let parts = 0;
    node.fate = (method) => {
      if (method === 'traverseiterator') parts += 1;
      return parts === 2 && method === 'traverseiterator' ? 'cut' : 'answer';
    };
    const seen: string[] = [];
    const reading = (async () => {
      for await (const { relay_id: relayId } of reader().listRelays()) seen.push(relayId);
    })();
    await rejects(reading, 'unreachable');
    expect(seen).toEqual([]);
  });

  test('a large answer is read in steps', async () => {
    node.iterators = 'inline';
    register(...Array.from({ length: 400 }, (_, index) => index));
    let pauses = 0;
    const run: ChainRegistryOptions['run'] = async (steps) => {
      let step = steps.next();
      for (; step.done !== true; step = steps.next()) pauses += 1;
      return step.value;
    };
    expect(await ids(reader({ run }))).toHaveLength(400);
    expect(pauses).toBeGreaterThan(90);
  });
});

test('07 §A4: the registration fee is read from the chain', async () => {
  expect(await reader().registrationFee()).toBe(10_000_000_000);
  node.contract.fee = 0;
  expect(await reader().registrationFee()).toBe(0);
});
