/** `posthouse registry` as an operator types it: the chain is a fake node, all else is real. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nodeRandom } from '@posthouse/protocol/node';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Argument, Signer } from '../../../protocol/test/registry-chain/contract.ts';
import { FakeNode } from '../../../protocol/test/registry-chain/fake-node.ts';
import { relayIdentity } from '../../src/keys/identity.ts';
import { createKeys, loadKeys } from '../../src/keys/keys.ts';
import { killAll, posthouse } from '../support/command.ts';
import { temporaryFolder } from '../support/folder.ts';
import { network } from '../support/in-process-relay.ts';

const endpoint = 'https://relay.example/svc/v1';

let folder: ReturnType<typeof temporaryFolder>;
let node: FakeNode;
let other: FakeNode;
let relayId: string;
beforeEach(async () => {
  folder = temporaryFolder();
  node = await FakeNode.start(network.context);
  other = await FakeNode.start(network.context, node.contract);
  await createKeys(folder.path, nodeRandom);
  ({ relayId } = relayIdentity(network, await loadKeys(folder.path)));
  configure({ nodes: [node.url, other.url] });
});
afterEach(async () => {
  killAll();
  await node[Symbol.asyncDispose]();
  await other[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

function configure(registry: unknown, https = endpoint): void {
  const config = {
    network: network.context,
    data: folder.path,
    public: { https: [https], peer: '/dns4/relay.example/tcp/4201' },
    registry,
  };
  writeFileSync(join(folder.path, 'relay.json'), JSON.stringify(config));
}

async function run(...args: string[]) {
  const config = ['--config', join(folder.path, 'relay.json')];
  const { ended, output } = posthouse(['registry', ...args, ...config]);
  return { code: await ended, output: output.text, errors: output.errors };
}

/** Executes what the command printed, as if the operator had signed and sent it. */
async function execute(task: string): Promise<unknown> {
  const { code, output } = await run('invocation', task);
  expect(code).toBe(0);
  const { params } = JSON.parse(output) as {
    params: [string, string, { value: Argument }[], Signer[]];
  };
  const [, method, args, signers] = params;
  return node.contract.execute({ method, args: args.map(({ value }) => value), signers });
}

describe('07 §A7: posthouse registry', () => {
  test('the printed invocation registers the relay, and the check reads it back', async () => {
    const { contract } = node;
    contract.balances.set(relayId, contract.fee);
    const before = await run('check');
    expect(before.code).toBe(1);
    expect(before.output).toBe(
      [
        `relay ${relayId}`,
        ...[node, other].flatMap(({ url }) => [
          `FAIL  ${url}: the registry has no record of this relay`,
          '      posthouse registry invocation register',
        ]),
        '',
      ].join('\n'),
    );
    const { errors } = await run('invocation', 'register');
    expect(errors).toContain('CustomContracts');
    expect(errors).toContain('The registration costs 100 GAS now');
    expect(await execute('register')).toBe(true);
    expect(await run('check')).toMatchObject({
      code: 0,
      output: expect.stringContaining(`ok    ${node.url}: this relay is active at ${endpoint}`),
    });
  }, 60_000);

  test('the check names each difference with its cure', async () => {
    node.contract.fee = 0;
    await execute('register');
    await execute('disable');
    expect((await run('check')).output).toContain(
      'this relay is registered and disabled\n      posthouse registry invocation enable',
    );
    await execute('enable');
    configure({ nodes: [node.url] }, 'https://moved.example/svc/v1');
    expect((await run('check')).output).toContain(
      `the registered address is ${endpoint}, the configured one is https://moved.example/svc/v1\n      posthouse registry invocation update-endpoint`,
    );
    expect(await execute('update-endpoint')).toBe(true);
    expect((await run('check')).code).toBe(0);
    const { contract } = node;
    const signers = [{ account: contract.owner, scopes: 'CalledByEntry' }];
    contract.execute({ method: 'suspendRelay', args: [relayId], signers });
    expect((await run('check')).output).toContain('ask the governance to restore it');
  }, 60_000);

  test('each node is read by itself; one that fails is named without its path', async () => {
    node.contract.fee = 0;
    await execute('register');
    other.magic = 1;
    configure({ nodes: [`${other.url}/sekret`, node.url] });
    expect((await run('invocation', 'register')).errors).toContain('The registration costs 0 GAS');
    configure({ nodes: [node.url, `${other.url}/sekret`] });
    const { code, output } = await run('check', '--json');
    expect(code).toBe(1);
    const lines = output.trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { relay_id: relayId, source: node.url, good: true },
      { source: other.url, good: false, seen: expect.stringContaining('magic 1') },
    ]);
    expect(output).not.toContain('sekret');
  }, 60_000);

  test('a registry file is checked too', async () => {
    const path = join(folder.path, 'registry.json');
    configure(path);
    expect((await run('check')).output).toContain(`FAIL  ${path}: `);
    const record = { relay_id: relayId, endpoint, status: 'active', updated_at: 1 };
    writeFileSync(path, JSON.stringify({ context: network.context, relays: [record] }));
    expect(await run('check')).toMatchObject({ code: 0 });
    expect((await run('invocation', 'rename')).code).toBe(2);
  }, 60_000);
});
