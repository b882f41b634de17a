/** An app that knows the address of one relay, and trusts the relay's claim of its ID once. */
import { activeRelays, Network } from '@posthouse/protocol';
import { nodePrimitives } from '@posthouse/protocol/node';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { MemoryStore, pinnedRegistry } from '../src/index.ts';
import { NodeTransport } from '../src/node.ts';
import { LyingRelay } from './support/lying-relay.ts';
import { network } from './support/relay-with-clients.ts';

let relay: LyingRelay;
let transport: NodeTransport;
let endpoint: string;
beforeAll(async () => {
  relay = await LyingRelay.start();
  transport = new NodeTransport({ ca: relay.world.ca });
  endpoint = relay.world.relay.https[0] as string;
});
afterAll(async () => {
  transport[Symbol.dispose]();
  await relay[Symbol.asyncDispose]();
});
beforeEach(() => {
  relay.asked.clear();
});

const descriptors = () => relay.asked.get('relay.descriptor') ?? 0;
const other = `0x${'12'.repeat(20)}`;

test('an account is set up through the address of a relay alone', async () => {
  const store = new MemoryStore();
  const registry = pinnedRegistry(network, { endpoint: `${endpoint}/`, transport, store });
  const account = await relay.world.person({ registry, transport, store });
  expect(await account.status()).toMatchObject({ homeRelay: relay.world.relay.relayId });
});

test('the relay is asked once: each later registry of the store has the same record', async () => {
  const store = new MemoryStore();
  const open = () => pinnedRegistry(network, { endpoint, transport, store });
  const { relayId } = relay.world.relay;
  const found = await open().getRelay(relayId);
  expect(found).toMatchObject({ relay_id: relayId, endpoint, status: 'active' });
  expect(await open().getRelay(relayId)).toEqual(found);
  expect(await activeRelays(open())).toEqual([found]);
  expect(descriptors()).toBe(1);
  expect(await open().getRelay(other)).toBeUndefined();
});

test('two that ask at the same time keep one record', async () => {
  const store = new MemoryStore();
  const open = () => pinnedRegistry(network, { endpoint, transport, store });
  const [one, two] = await Promise.all([activeRelays(open()), activeRelays(open())]);
  expect(one).toEqual(two);
});

test('01 §13.3: a descriptor that does not verify is trusted in nothing, and not remembered', async () => {
  const store = new MemoryStore();
  const registry = pinnedRegistry(network, { endpoint, transport, store });
  const ask = () => registry.getRelay(relay.world.relay.relayId);
  for (const lie of [
    (descriptor: object) => ({ ...descriptor, relay_id: other }),
    (descriptor: object) => ({ ...descriptor, relay_id: 7 }),
    (descriptor: object) => ({ ...descriptor, expires_at: 1 }),
    (descriptor: object) => ({ ...descriptor, capabilities: ['more.v1'] }),
    () => [],
  ]) {
    relay.lie('relay.descriptor', lie);
    await expect(ask()).rejects.toMatchObject({ code: 'relay_misbehaviour' });
  }
  relay.behave();
  const elsewhere = new Network({
    context: `neo:860833102:0x${'5b'.repeat(20)}`,
    primitives: nodePrimitives,
  });
  const wrong = pinnedRegistry(elsewhere, { endpoint, transport, store });
  await expect(wrong.getRelay(other)).rejects.toMatchObject({ reason: 'invalid_descriptor' });
  expect(await ask()).toBeDefined();
});

test('an address that is no base address of an API is refused before anything is asked', () => {
  const store = new MemoryStore();
  for (const wrong of ['http://127.0.0.1/svc/v1', 'relay.example', `${endpoint}?a`]) {
    expect(() => pinnedRegistry(network, { endpoint: wrong, transport, store })).toThrow(
      expect.objectContaining({ code: 'invalid_input' }),
    );
  }
  expect(descriptors()).toBe(0);
});
