/** A second opinion: what another Neo library makes of the same keys, nodes and invocations. */
import { CONST, rpc, sc, tx, u, wallet } from '@cityofzion/neon-core';
import { base64 } from '@scure/base';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  ChainRegistry,
  deriveRelayId,
  encodeBase64url,
  Network,
  registryInvocation,
} from '../../src/index.ts';
import { nodePrimitives } from '../../src/node/primitives.ts';
import { gas } from './contract.ts';
import { FakeNode } from './fake-node.ts';
import { nodePost } from './node-post.ts';

const context = `neo:860833102:0x${'5a'.repeat(20)}`;
const network = new Network({ context, primitives: nodePrimitives });
const account = new wallet.Account('11'.repeat(32));
const relayId = `0x${account.scriptHash}`;

let parts: AsyncDisposableStack;
let node: FakeNode;
beforeEach(async () => {
  parts = new AsyncDisposableStack();
  node = parts.use(await FakeNode.start(context));
  node.contract.fee = 0;
});
afterEach(() => parts.disposeAsync());

test('07 §A2: the relay ID of a key is the script hash that neon-core derives', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
      const { publicKey, scriptHash } = new wallet.Account(
        Buffer.from(bytes.with(0, 1)).toString('hex'),
      );
      const key = encodeBase64url(Buffer.from(publicKey, 'hex'));
      expect(deriveRelayId(network, key)).toBe(`0x${scriptHash}`);
    }),
    { numRuns: 20 },
  );
});

test('07 §A6: neon-core reads the same magic, record and list from the node', async () => {
  const { contract } = node;
  const ids = [relayId, `0x${'34'.repeat(20)}`];
  for (const one of ids) {
    const args = [one, 'https://relay.example/svc/v1'];
    const signers = [{ account: one, scopes: 'CalledByEntry' }];
    expect(contract.execute({ method: 'registerRelay', args, signers })).toBe(true);
  }
  const registry = new ChainRegistry({
    network,
    nodes: [node.url],
    post: parts.use(nodePost()).post,
  });
  const client = new rpc.RPCClient(node.url);
  expect(String((await client.getVersion()).protocol.network)).toBe(network.magic);
  const hash = sc.ContractParam.hash160(relayId).toJson();
  const one = await client.invokeFunction(network.registry, 'getRelay', [hash]);
  expect(one.state).toBe('HALT');
  expect(neonEntry(one.stack[0])).toEqual(await registry.getRelay(relayId));
  const { stack, session } = await client.invokeFunction(network.registry, 'listRelays', []);
  const iterator = (stack[0] as { id?: string }).id as string;
  const items = await client.traverseIterator(session as string, iterator, 100);
  const listed: unknown[] = [];
  for await (const entry of registry.listRelays()) listed.push(entry);
  expect((items as unknown[]).map(neonEntry)).toEqual(listed);
  expect(listed).toHaveLength(2);
});

/** A record, by neon-core's own items; those of arrays it cannot construct in this version. */
function neonEntry(json: unknown): unknown {
  const { value } = json as { value: sc.StackItemLike[] };
  const [id, endpoint, status, updatedAt] = value.map((item) => new sc.StackItem(item));
  const bytes = (item: sc.StackItem | undefined) => base64.decode(String(item?.value));
  const text = (item: sc.StackItem | undefined) =>
    u.hexstring2str(u.base642hex(String(item?.value)));
  return {
    relay_id: `0x${u.HexString.fromHex(u.ab2hexstring(bytes(id))).toLittleEndian()}`,
    endpoint: text(endpoint),
    status: text(status),
    updated_at: Number(updatedAt?.value),
  };
}

test('07 §A7: the invocation is the one that neon-core makes, with the same scope', async () => {
  const endpoint = 'https://relay.example/svc/v1';
  const { params } = registryInvocation(network, relayId, { task: 'register', endpoint });
  const [registry, method, args, signers] = params as never as [
    string,
    string,
    sc.ContractParamJson[],
    tx.SignerJson[],
  ];
  const script = sc.createScript({
    scriptHash: registry.slice(2),
    operation: method,
    args: args.map((arg) => sc.ContractParam.fromJson(arg)),
  });
  const own = sc.createScript({
    scriptHash: network.registry.slice(2),
    operation: 'registerRelay',
    args: [sc.ContractParam.hash160(relayId), sc.ContractParam.string(endpoint)],
  });
  expect(script).toBe(own);
  const [signer] = signers.map((one) => tx.Signer.fromJson(one));
  expect(signer?.scopes).toBe(tx.WitnessScope.CustomContracts);
  expect(signer?.allowedContracts.map((hash) => `0x${hash.toBigEndian()}`)).toEqual([
    network.registry,
    gas,
  ]);
  expect(`0x${CONST.NATIVE_CONTRACT_HASH.GasToken}`).toBe(gas);
});
