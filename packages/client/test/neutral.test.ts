/** The neutral entry runs in a browser: nothing of Node may be in it. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RelayEntry } from '@posthouse/protocol';
import { build } from 'esbuild';
import { chromium } from 'playwright-core';
import { expect, test } from 'vitest';
import { FakeNode } from '../../protocol/test/registry-chain/fake-node.ts';
import { network, RelayWithClients } from './support/relay-with-clients.ts';

const chromiumPath = '/usr/bin/chromium';

/** A page's whole program, with nothing but the platform beneath it. */
const program = `
  import { Network, staticRegistry } from '@posthouse/protocol';
  import { noblePrimitives } from '@posthouse/protocol/crypto';
  import { Client, MemoryStore, webTransport } from '@posthouse/client';
  globalThis.run = async ({ context, registry, prefer }) => {
    const network = new Network({ context, primitives: noblePrimitives });
    const client = await Client.open({
      network,
      registry: 'nodes' in registry ? registry : staticRegistry(network, registry),
      transport: webTransport,
      store: new MemoryStore(),
      prefer,
    });
    const account = await client.setUp();
    const sent = await account.messages.send(account.id, { text: 'from a page' });
    await account.sync();
    const messages = await account.messages.list();
    return { status: sent.status, texts: messages.map((row) => row.body?.text) };
  };
`;

function register({ contract }: FakeNode, relays: readonly RelayEntry[]): void {
  contract.fee = 0;
  for (const { relay_id: relayId, endpoint } of relays) {
    const signers = [{ account: relayId, scopes: 'CalledByEntry' }];
    contract.execute({ method: 'registerRelay', args: [relayId, endpoint], signers });
  }
}

async function bundle(): Promise<{ text: string; inputs: string[] }> {
  const { outputFiles, metafile } = await build({
    stdin: { contents: program, resolveDir: import.meta.dirname, loader: 'ts' },
    bundle: true,
    format: 'iife',
    platform: 'browser',
    write: false,
    metafile: true,
  });
  return { text: outputFiles[0]?.text ?? '', inputs: Object.keys(metafile.inputs) };
}

test.each(['', '/web', '/encrypted-store'])(
  'the entry @posthouse/client%s defines the symbols of `using` before classes name methods with them',
  async (entry) => {
    const contents = `export * from '@posthouse/client${entry}';`;
    const { outputFiles } = await build({
      stdin: { contents, resolveDir: import.meta.dirname },
      ...({ bundle: true, format: 'esm', platform: 'browser', write: false } as const),
    });
    const text = outputFiles[0]?.text ?? '';
    const definition = text.indexOf('Symbol.for(`Symbol.');
    expect(definition).toBeGreaterThan(-1);
    expect(text.search(/\[Symbol\.(?:asyncD|d)ispose\]/)).toBeGreaterThan(definition);
  },
);

test('the neutral entry bundles for a browser, without Node, ws or commander', async () => {
  const { inputs } = await bundle();
  expect(inputs.filter((path) => /node_modules\/(?:ws|commander)\//.test(path))).toEqual([]);
  expect(inputs.filter((path) => /(?:sqlite|node-transport|courier)/.test(path))).toEqual([]);
  expect(inputs.some((path) => path.endsWith('client/src/account.ts'))).toBe(true);
});

test.skipIf(!existsSync(chromiumPath))(
  'a page of any origin sets an account up and uses it, over either transport; 07 §A6: through nodes of the chain too',
  async () => {
    await using world = await RelayWithClients.start();
    const browser = await chromium.launch({
      executablePath: chromiumPath,
      args: ['--no-sandbox', '--ignore-certificate-errors'],
    });
    try {
      const page = await browser.newPage();
      await page.addScriptTag({ content: (await bundle()).text });
      const file = JSON.parse(
        readFileSync(join(world.folder, 'relay', 'registry.json'), 'utf8'),
      ) as { relays: RelayEntry[] };
      await using node = await FakeNode.start(network.context);
      register(node, file.relays);
      for (const [prefer, registry] of [
        ['websocket', file],
        ['http', file],
        ['http', { nodes: [node.url] }],
      ] as const) {
        const given = { context: network.context, registry, prefer };
        expect(await page.evaluate(`run(${JSON.stringify(given)})`)).toEqual({
          status: 'target_accepted',
          texts: ['from a page'],
        });
      }
    } finally {
      await browser.close();
    }
  },
);
