/** Clients whose registry is the contract on the chain: a real relay, and a fake node. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { activeRelays } from '@posthouse/protocol';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FakeNode } from '../../protocol/test/registry-chain/fake-node.ts';
import { type Client, MemoryStore, nodePost } from '../src/index.ts';
import { NodeTransport } from '../src/node.ts';
import { Person } from './support/courier.ts';
import { network, relayWithClients, texts } from './support/relay-with-clients.ts';

const world = relayWithClients();

let node: FakeNode;
beforeEach(async () => {
  node = await FakeNode.start(network.context);
  node.contract.fee = 0;
});
afterEach(() => node[Symbol.asyncDispose]());

/** Registers the world's relay, or another ID at an address where no relay answers. */
function register(relayId = world.relay.relayId, endpoint = world.relay.https[0] as string): void {
  const signers = [{ account: relayId, scopes: 'CalledByEntry' }];
  node.contract.execute({ method: 'registerRelay', args: [relayId, endpoint], signers });
}

const other = (digit: string) => `0x${digit.repeat(40)}`;
const client = (store = new MemoryStore()): Promise<Client> =>
  world.client({ registry: { nodes: [node.url] }, store });

describe('07 §A9: a client finds relays through the chain', () => {
  test('sets an account up at a registered relay, and uses it', async () => {
    register();
    register(other('1'), 'https://127.0.0.1:1/svc/v1');
    const account = await (await client()).setUp();
    await account.messages.send(account.id, { text: 'over the chain' });
    await account.sync();
    expect(await texts(account)).toEqual(['over the chain']);
    expect(node.asked).toContain('listRelays');
    expect(node.sessions.size).toBe(0);
  });

  test('a relay that is not registered, or not active, is not used', async () => {
    const { relayId } = world.relay;
    const setUp = async () => await (await client()).setUp({ relayId });
    await expect(setUp()).rejects.toMatchObject({ code: 'no_relay' });
    register();
    const signers = [{ account: relayId, scopes: 'CalledByEntry' }];
    node.contract.execute({ method: 'setRelayEnabled', args: [relayId, false], signers });
    await expect(setUp()).rejects.toMatchObject({ code: 'no_relay' });
    node.contract.execute({ method: 'setRelayEnabled', args: [relayId, true], signers });
    expect((await (await setUp()).status()).homeRelay).toBe(relayId);
  });

  test('07 §A2: a node of another network is not believed', async () => {
    register();
    node.magic = 1;
    const { relayId } = world.relay;
    const setUp = (await client()).setUp({ relayId });
    await expect(setUp).rejects.toMatchObject({ code: 'relay_unreachable' });
  });

  test('07 §B5: a relay that a list has twice is not chosen', async () => {
    register();
    node.tamper = (method, result) =>
      method === 'traverseiterator' && Array.isArray(result) ? [...result, ...result] : result;
    await expect((await client()).setUp()).rejects.toMatchObject({ code: 'no_relay' });
  });

  test('unusable nodes are refused when the client is opened', async () => {
    const open = world.client({ registry: { nodes: ['http://node.example'] } });
    await expect(open).rejects.toMatchObject({ code: 'bad_request' });
  });

  test('a registry of the app can read the chain over a transport of its own', async () => {
    register();
    using transport = new NodeTransport();
    const { ChainRegistry } = await import('@posthouse/protocol');
    const registry = new ChainRegistry({ network, nodes: [node.url], post: nodePost(transport) });
    expect(await activeRelays(registry)).toHaveLength(1);
  });
});

describe('07 §A6: while no node can be read', () => {
  test('the relay that was found before serves for six hours, no other one', async () => {
    register();
    const store = new MemoryStore();
    const { relayId } = world.relay;
    await (await client(store)).setUp({ relayId });
    node.fate = () => 'status';
    const sync = async () => await (await (await client(store)).account()).sync();
    await sync();
    await expect((await client()).setUp({ relayId })).rejects.toMatchObject({
      code: 'relay_unreachable',
    });
    world.clock.advance(21_600);
    await expect(sync()).rejects.toMatchObject({ code: 'relay_unreachable' });
    node.fate = () => 'answer';
    await sync();
  });

  test('a record that became malformed is an answer: the one found before does not serve', async () => {
    register();
    const store = new MemoryStore();
    const { relayId } = world.relay;
    await (await client(store)).setUp({ relayId });
    const record = node.contract.records.get(relayId);
    if (record === undefined) throw new Error('it is not registered');
    const endpoint = new TextEncoder().encode('https://relay.example/?query');
    node.contract.records.set(relayId, { ...record, endpoint });
    const sync = async () => await (await (await client(store)).account()).sync();
    await expect(sync()).rejects.toMatchObject({ code: 'relay_unreachable' });
  });

  test('a relay that was read as suspended is not used when nodes fail later', async () => {
    register();
    const store = new MemoryStore();
    const { relayId } = world.relay;
    await (await client(store)).setUp({ relayId });
    const signers = [{ account: node.contract.owner, scopes: 'CalledByEntry' }];
    node.contract.execute({ method: 'suspendRelay', args: [relayId], signers });
    const sync = async () => await (await (await client(store)).account()).sync();
    await expect(sync()).rejects.toMatchObject({ code: 'no_relay' });
    node.fate = () => 'status';
    await expect(sync()).rejects.toMatchObject({ code: 'relay_unreachable' });
  });
});

describe('courier', () => {
  const flags = () => [
    ...['--registry-node', node.url, '--network', network.context],
    ...['--ca', join(world.folder, 'relay', 'tls', 'ca.pem')],
  ];

  test('setup with nodes stores them, so that later commands need no flags', async () => {
    register();
    const ann = new Person(world, 'chain-ann');
    const { relay } = await ann.json('setup', ...flags());
    expect(relay).toBe(world.relay.relayId);
    const stored = JSON.parse(readFileSync(join(ann.folder, 'courier.json'), 'utf8'));
    expect(stored.registry).toEqual({ nodes: [node.url], agree: 1 });
    const before = node.asked.length;
    expect(await ann.json('whoami')).toMatchObject({ relay });
    await ann.json('sync');
    expect(node.asked.length).toBeGreaterThan(before);
  });

  test('finds the relay at a URL through the chain', async () => {
    register();
    const ann = new Person(world, 'chain-url');
    const url = world.relay.https[0] as string;
    const { relay } = await ann.json('setup', '--relay', url, ...flags());
    expect(relay).toBe(world.relay.relayId);
  });

  test('a node that cannot be reached is named with the reason, without its path', async () => {
    const ann = new Person(world, 'chain-away');
    const away = ['--registry-node', 'http://127.0.0.1:1/sekret', '--network', network.context];
    const { exit, error } = await ann.run(['setup', ...away]);
    expect(exit).toBe(4);
    expect(error).toContain('http://127.0.0.1:1: no answer (ECONNREFUSED)');
    expect(error).not.toContain('sekret');
  });

  test.each([
    [['--registry-node', 'http://node.example'], 'must have https://'],
    [['--registry-node', 'https://a.example', '--registry-agree', '2'], 'one host only'],
    [['--registry-node', 'https://a.example', '--registry', 'file'], 'either --registry'],
    [['--registry-agree', '2', '--registry', 'file'], '--registry-agree needs --registry-node'],
    [['--registry-node', 'https://a.example'], '--registry-node needs --network'],
  ])('%j is refused with what to do', async (args, message) => {
    const ann = new Person(world, 'chain-refused');
    const { exit, error } = await ann.run(['setup', ...args]);
    expect({ exit, error }).toEqual({ exit: 2, error: expect.stringContaining(message) });
  });
});
