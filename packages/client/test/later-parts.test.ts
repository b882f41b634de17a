/** The parts of the client that are loaded later: what they take of it, and what happens if they cannot be loaded. */
import { readFileSync } from 'node:fs';
import { appendFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { build } from 'esbuild';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../relay/test/support/folder.ts';
import type * as client from '../src/index.ts';
import { MemoryStore } from '../src/index.ts';
import { NodeTransport } from '../src/node.ts';
import { isConnected } from './support/connection-events.ts';
import { network, relayWithClients } from './support/relay-with-clients.ts';

/** Returns the names of the list in a source file. */
function namesIn(file: string): string[] {
  const text = readFileSync(new URL(`../src/${file}`, import.meta.url), 'utf8');
  const list = /^export const (?:allParts = )?\[\n([^\]]*)\]/m.exec(text)?.[1] ?? '';
  return list.split(/,\s*/).map((name) => name.trim());
}

test('taken.ts names the parts in the order of parts.ts', () => {
  const names = namesIn('parts.ts');
  expect(names).toContain('checkSchema');
  const [first, ...others] = names;
  expect(first).toBe('Type');
  expect(namesIn('taken.ts')).toEqual(['', ...others]);
});

const world = relayWithClients({ host: { channels: true } });

/** The client as a bundler divides it, in a folder of its own; parts tell `globalThis.loaded` that they are loaded. */
async function dividedClient(folder: string) {
  const { metafile } = await build({
    stdin: {
      contents: `export { Client, MemoryStore } from '@posthouse/client';
        export { Network } from '@posthouse/protocol';
        export { nodePrimitives } from '@posthouse/protocol/node';`,
      resolveDir: import.meta.dirname,
    },
    ...{ bundle: true, splitting: true, format: 'esm', platform: 'node', metafile: true },
    ...{ outdir: folder, absWorkingDir: folder, outExtension: { '.js': '.mjs' } },
  });
  const files = Object.entries(metafile.outputs).flatMap(([path, { entryPoint = '' }]) =>
    /\/(later|markdown\/index)\.ts$/.test(entryPoint) ? [join(folder, path)] : [],
  );
  expect(files).toHaveLength(2);
  for (const path of files) await appendFile(path, '\nglobalThis.loaded?.();');
  return {
    bundle: (await import(join(folder, 'stdin.mjs'))) as typeof client & {
      readonly Network: typeof import('@posthouse/protocol').Network;
      readonly nodePrimitives: typeof network.primitives;
    },
    takeAway: () => Promise.all(files.map((path) => rename(path, `${path}.away`))),
    bringBack: () => Promise.all(files.map((path) => rename(`${path}.away`, path))),
  };
}

test('a part that cannot be loaded is a recoverable error, and following loads all parts', async () => {
  using folder = temporaryFolder();
  const { bundle, takeAway, bringBack } = await dividedClient(folder.path);
  let loaded = 0;
  Object.assign(globalThis, {
    loaded: () => {
      loaded += 1;
    },
  });
  using transport = new NodeTransport({ ca: world.ca });
  // An account that was set up earlier.
  const store = new MemoryStore();
  {
    await using earlier = await world.client({ store });
    await earlier.setUp();
  }
  await takeAway();
  await using client = await bundle.Client.open({
    network: new bundle.Network({ context: network.context, primitives: bundle.nodePrimitives }),
    ...{ registry: world.registry, transport, store },
  });
  const setUp = () => client.setUp();
  await expect(setUp()).rejects.toMatchObject({ code: 'part_unavailable' });
  const ann = await client.account();
  const create = () => ann.channels.create({ name: 'News', description: 'of the day' });
  const text = '![map](ni:///sha-256;47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU)';
  const post = () =>
    ann.messages.post(ann.id, { text, contentType: 'text/markdown; variant=CommonMark' });
  const unavailable = { code: 'part_unavailable', message: expect.stringContaining('try again') };
  for (const work of [create, post]) await expect(work()).rejects.toMatchObject(unavailable);
  expect(await ann.messages.list()).toEqual([]);

  // Following goes on without them, and loads them as soon as it can.
  await untilConnected();
  expect(loaded).toBe(0);
  // What was tried when it connected has failed by now.
  for (const work of [create, post]) await expect(work()).rejects.toMatchObject(unavailable);
  await bringBack();
  await untilConnected();
  await expect.poll(() => loaded).toBe(2);
  await takeAway();
  expect(await create()).toMatchObject({ descriptor: { name: 'News' } });
  await expect(post()).rejects.toMatchObject({ code: 'invalid_input' });
  Reflect.deleteProperty(globalThis, 'loaded');

  async function untilConnected() {
    for await (const event of ann.follow()) if (isConnected(event)) return;
  }
});

test('without a part the timeline goes on, and what needs it is applied once it can be loaded', async () => {
  using folder = temporaryFolder();
  const { bundle, takeAway, bringBack } = await dividedClient(folder.path);
  using transport = new NodeTransport({ ca: world.ca });
  const phone = await world.person();
  const store = new MemoryStore();
  {
    await using earlier = await world.client({ store });
    const request = await earlier.requestDevice(phone.publicKey);
    const approval = await phone.devices.approve(request);
    const known = { accountPublicKey: phone.publicKey };
    const joined = await earlier.completeDevice(approval, known);
    for (const each of [joined, phone, joined]) await each.sync();
  }
  await takeAway();
  await using client = await bundle.Client.open({
    network: new bundle.Network({ context: network.context, primitives: bundle.nodePrimitives }),
    ...{ registry: world.registry, transport, store, clock: world.clock },
  });
  const laptop = await client.account();
  const { id, link } = await (await world.person()).channels.create({ name: 'News' });
  await phone.channels.follow(link);
  world.clock.advance(61);
  await phone.sync();
  await phone.messages.send(phone.id, { text: 'after what needs the part' });
  const texts = async () => (await laptop.messages.list()).map(({ body }) => body?.text);
  // What is missing is told, after everything was read.
  await expect(laptop.sync()).rejects.toMatchObject({ code: 'part_unavailable' });
  expect(await texts()).toEqual(['after what needs the part']);
  expect(await laptop.channels.list()).toEqual([]);
  // Following is not interrupted by it.
  const kinds: string[] = [];
  for await (const event of laptop.follow()) {
    kinds.push(event.kind === 'connection' ? event.state : event.kind);
    if (isConnected(event)) await phone.messages.send(phone.id, { text: 'again' });
    if (event.kind === 'message' && event.message.body?.text === 'again') break;
  }
  expect(kinds).not.toContain('disconnected');
  await bringBack();
  await laptop.sync();
  await laptop.sync();
  expect(await laptop.channels.list()).toMatchObject([{ id, followState: 'followed' }]);
  expect(await texts()).toEqual(['after what needs the part', 'again']);
});
