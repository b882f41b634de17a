/** Several nodes: one after another, and two that must agree. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  ChainRegistry,
  type ChainRegistryOptions,
  checkRegistryNodes,
  Network,
  type RegistryError,
} from '../../src/index.ts';
import { nodePrimitives } from '../../src/node/primitives.ts';
import { FakeNode } from './fake-node.ts';
import { nodePost } from './node-post.ts';

const context = `neo:860833102:0x${'5a'.repeat(20)}`;
const network = new Network({ context, primitives: nodePrimitives });
const relayId = `0x${'12'.repeat(20)}`;

let parts: AsyncDisposableStack;
let a: FakeNode;
let b: FakeNode;
let failures: { readonly node: string; readonly error: RegistryError }[];
let differences: unknown[];
beforeEach(async () => {
  parts = new AsyncDisposableStack();
  a = parts.use(await FakeNode.start(context));
  b = parts.use(await FakeNode.start(context));
  failures = [];
  differences = [];
  for (const { contract } of [a, b]) register(contract);
});
afterEach(() => parts.disposeAsync());

const owner = (contract: FakeNode['contract']) => [
  { account: contract.owner, scopes: 'CalledByEntry' },
];
const own = [{ account: relayId, scopes: 'CalledByEntry' }];

function register(contract: FakeNode['contract']): void {
  contract.fee = 0;
  const args = [relayId, 'https://relay.example/svc/v1'];
  contract.execute({ method: 'registerRelay', args, signers: own });
}

const suspend = ({ contract }: FakeNode) =>
  contract.execute({ method: 'suspendRelay', args: [relayId], signers: owner(contract) });

const reader = (options: Partial<ChainRegistryOptions> = {}) =>
  new ChainRegistry({
    network,
    nodes: [a.url, b.url],
    post: parts.use(nodePost(1_000)).post,
    observer: {
      failed: (node, error) => void failures.push({ node, error }),
      differed: (id, nodes) => void differences.push({ id, nodes }),
    },
    ...options,
  });

describe('07 §A6: several nodes', () => {
  test('the first one is asked; the second is left alone while that answers', async () => {
    const registry = reader();
    await registry.getRelay(relayId);
    await registry.getRelay(relayId);
    expect(b.asked).toEqual([]);
  });

  test.each(['status', 'close', 'hang', 'redirect', 'huge'] as const)(
    'one that fails (%s) is replaced by the next, which stays',
    async (fate) => {
      const registry = reader();
      a.fate = () => fate;
      expect(await registry.getRelay(relayId)).toMatchObject({ status: 'active' });
      const before = a.asked.length;
      a.fate = () => 'answer';
      await registry.getRelay(relayId);
      expect(a.asked).toHaveLength(before);
      expect(failures).toMatchObject([{ node: a.url, error: { code: 'unreachable' } }]);
    },
  );

  test.each([
    ['hang', 'no answer in time'],
    ['close', 'no answer (ECONNRESET)'],
    ['redirect', 'it answered with status 307'],
  ] as const)('the reason of one that fails (%s) is in the error', async (fate, reason) => {
    a.fate = () => fate;
    await expect(reader({ nodes: [a.url] }).getRelay(relayId)).rejects.toThrow(reason);
  });

  test('one of another network is never used', async () => {
    a.magic = 1;
    expect(await reader().getRelay(relayId)).toMatchObject({ status: 'active' });
    expect(failures).toMatchObject([{ error: { code: 'wrong_network' } }]);
    expect(a.asked).toEqual(['getversion']);
  });

  test('one that cannot return the list is replaced for it', async () => {
    a.iterators = 'truncated';
    const seen: string[] = [];
    for await (const { relay_id: id } of reader().listRelays()) seen.push(id);
    expect(seen).toEqual([relayId]);
    expect(failures).toMatchObject([{ node: a.url, error: { code: 'incomplete_list' } }]);
  });

  test('if all fail, the error names each with its reason', async () => {
    a.fate = () => 'status';
    b.magic = 1;
    const reading = reader().getRelay(relayId);
    await expect(reading).rejects.toThrow(
      `no node of the registry can be used: ${a.url}: it answered with status 503; ${b.url}: it belongs to the network with magic 1`,
    );
  });

  test('a caller without more time begins at another node the next time', async () => {
    a.fate = () => 'hang';
    const registry = reader({ post: parts.use(nodePost(60_000)).post });
    const leaving = new AbortController();
    const reading = registry.getRelay(relayId, leaving.signal);
    leaving.abort(new Error('no more time'));
    await expect(reading).rejects.toThrow('no more time');
    expect(await registry.getRelay(relayId)).toMatchObject({ status: 'active' });
  });
});

describe('two nodes that must agree', () => {
  test('an active record counts if both have it', async () => {
    expect(await reader({ agree: 2 }).getRelay(relayId)).toMatchObject({ status: 'active' });
    expect([a.asked, b.asked]).toEqual(Array(2).fill(['getversion', 'getRelay']));
  });

  test('a record that admits no relay needs one node only', async () => {
    suspend(a);
    expect(await reader({ agree: 2 }).getRelay(relayId)).toMatchObject({ status: 'suspended' });
    expect(await reader({ agree: 2 }).getRelay(`0x${'34'.repeat(20)}`)).toBeUndefined();
    expect(b.asked).toEqual([]);
  });

  test('a record that the second node has otherwise or not at all does not count', async () => {
    const registry = reader({ agree: 2 });
    const differs = async () =>
      await expect(registry.getRelay(relayId)).rejects.toMatchObject({ code: 'nodes_differ' });
    suspend(b);
    await differs();
    b.contract.records.clear();
    await differs();
    register(b.contract);
    await differs();
    b.contract.records = new Map(a.contract.records);
    const args = [relayId, 'https://other.example/svc/v1'];
    b.contract.execute({ method: 'updateRelayEndpoint', args, signers: own });
    await differs();
    const record = a.contract.records.get(relayId);
    if (record === undefined) throw new Error('it is not registered');
    const endpoint = new TextEncoder().encode('https://other.example/svc/v1');
    b.contract.records.set(relayId, { ...record, endpoint });
    await differs();
    expect(differences).toEqual(Array(5).fill({ id: relayId, nodes: [a.url, b.url] }));
    b.contract.records = new Map(a.contract.records);
    expect(await registry.getRelay(relayId)).toMatchObject({ status: 'active' });
  });

  test('one node alone is not enough', async () => {
    b.fate = () => 'status';
    const reading = reader({ agree: 2 }).getRelay(relayId);
    await expect(reading).rejects.toThrow('no second node of the registry can be used');
  });

  test('a second one that hangs is waited for once, while a third one answers', async () => {
    const c = parts.use(await FakeNode.start(context, a.contract));
    b.fate = () => 'hang';
    const registry = reader({ agree: 2, nodes: [a.url, b.url, c.url] });
    for (let round = 0; round < 3; round += 1) {
      expect(await registry.getRelay(relayId)).toMatchObject({ status: 'active' });
    }
    expect(b.asked).toEqual(['getversion']);
    c.fate = () => 'status';
    b.fate = () => 'answer';
    expect(await registry.getRelay(relayId)).toMatchObject({ status: 'active' });
    expect(b.asked).toEqual(['getversion', 'getversion', 'getRelay']);
  });

  test('two addresses of one host are one opinion', async () => {
    const nodes = [a.url, `${a.url}/rpc`, b.url];
    await reader({ agree: 2, nodes }).getRelay(relayId);
    expect([a.asked.length, b.asked.length]).toEqual([2, 2]);
  });
});

describe('the list of nodes', () => {
  const nodes = (count: number) => Array.from({ length: count }, (_, n) => `https://n${n}.example`);
  test.each([
    [{ nodes: nodes(1) }],
    [{ nodes: nodes(8), agree: 2 }],
    [{ nodes: ['https://node.example:10331/path?key=1'] }],
    [{ nodes: ['http://127.0.0.1:10332', 'http://[::1]:10332', 'http://localhost:10332'] }],
  ])('%j is accepted', (value) => {
    expect(() => checkRegistryNodes(value)).not.toThrow();
  });
  test.each([
    [{ nodes: [] }],
    [{ nodes: nodes(9) }],
    [{ nodes: nodes(1), agree: 3 }],
    [{ nodes: nodes(1), agree: 2 }],
    [{ nodes: ['https://a.example', 'https://a.example/rpc'], agree: 2 }],
    [{ nodes: ['https://a.example:10331', 'https://a.example.:10332'], agree: 2 }],
    [{ nodes: ['https://a.example', 'https://a.example'] }],
    [{ nodes: ['http://node.example'] }],
    [{ nodes: ['http://127.0.0.1.example'] }],
    [{ nodes: ['http://10.0.0.1'] }],
    [{ nodes: ['ftp://127.0.0.1'] }],
    [{ nodes: ['https://user:password@node.example'] }],
    [{ nodes: ['https://node.example/#x'] }],
    [{ nodes: [`https://node.example/${'x'.repeat(2_048)}`] }],
    [{ nodes: 'https://node.example' }],
  ])('%j is refused', (value) => {
    expect(() => checkRegistryNodes(value)).toThrow(
      expect.objectContaining({ code: 'bad_request' }),
    );
  });
});
