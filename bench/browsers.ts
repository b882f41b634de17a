/**
 * Measures the client in pages of Chromium, Firefox and WebKit, with Node on SQLite as 1: set-up,
 * sending, a reload, receiving 300 and 1,000 messages, the longest time that the page had no turn
 * (in the page, and with the client in a worker), verifications, and lists of many stored messages.
 *
 *   npm run bench:browsers [-- --stored 100000 --engines Chromium,Firefox]
 *
 * Relay and sender are in this process, so that they take a part of the machine in all rows alike.
 */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Account, Client, MemoryStore } from '@posthouse/client';
import { NodeTransport, nodePrimitives, SqliteStore } from '@posthouse/client/node';
import { Network, staticRegistry } from '@posthouse/protocol';
import { Relay } from '@posthouse/relay';
import { bundleForPage, serveApp } from '../packages/client/test/web/support/app-server.ts';
import {
  engineNames,
  isMissing,
  openBrowser,
} from '../packages/client/test/web/support/engines.ts';
import { temporaryFolder } from '../packages/relay/test/support/folder.ts';
import * as program from './browsers-program.ts';
import { count, readOptions, words } from './options.ts';

const values = readOptions('npm run bench:browsers', {
  stored: count(100_000),
  engines: words(engineNames),
});

const network = new Network({
  context: `neo:860833102:0x${'5a'.repeat(20)}`,
  primitives: nodePrimitives,
});
const rate = { accountRate: 1e9, accountBurst: 1e9, addressRate: 1e9, addressBurst: 1e9 };

using folder = temporaryFolder();
const data = join(folder.path, 'relay');
mkdirSync(data);
await using _relay = await Relay.start({
  ...{ network: network.context, dev: true, data, listen: '127.0.0.1:0', log: 'silent' },
  ...{ federation: { listen: '' }, limits: rate },
});
const registry = JSON.parse(readFileSync(join(data, 'registry.json'), 'utf8'));
const transport = new NodeTransport({ ca: readFileSync(join(data, 'tls', 'ca.pem'), 'utf8') });
const onNode = { network, registry: staticRegistry(network, registry), transport };

/** What one engine is measured by: expressions are run by `run`, in a page or here. */
type Row = Record<string, number>;

/** A sender who is a contact of an account, whose calls `ann` makes. */
async function senderFor(ann: {
  invite(): Promise<string>;
  approve(peer: string): Promise<unknown>;
}): Promise<Account> {
  const bob = await (await Client.open({ ...onNode, store: new MemoryStore() })).setUp();
  await bob.contacts.join(await ann.invite());
  await ann.approve(bob.id);
  await bob.sync();
  return bob;
}

async function post(bob: Account, to: string, messages: number): Promise<void> {
  for (let index = 0; index < messages; index += 1) await bob.messages.post(to, { text: 'text' });
  await bob.sync();
}

async function measureNode(): Promise<Row> {
  const options = { ...onNode, store: SqliteStore.open(join(folder.path, 'node.sqlite')) };
  let ann = undefined as unknown as Account;
  const row: Row = {
    setUp: await program.timed(async () => {
      ann = await program.setUp(options);
    }),
  };
  const bob = await senderFor({
    invite: async () => (await ann.contacts.invite()).text,
    approve: async (peer) => {
      await ann.sync();
      await ann.contacts.approve(peer);
    },
  });
  row.send = await program.sendTime(ann, bob.id, 20);
  for (const messages of [300, 1_000]) {
    await post(bob, ann.id, messages);
    row[`gap${messages}`] = await program.longestGap(async () => {
      row[`receive${messages}`] = await program.timed(() => ann.sync());
    });
  }
  row.reload = await program.reloadTime(options);
  const { here, turns } = await program.verificationTimes(options, 80);
  Object.assign(row, { verify: here, verifyInTurns: turns });
  await program.fill(options, { account: ann.id, peer: bob.id, count: values.stored });
  const lists = await program.listTimes(ann, bob.id);
  return { ...row, list: lists.median, listMost: lists.most };
}

const page = `
import { Network, staticRegistry } from '@posthouse/protocol';
import { webTransport } from '@posthouse/client';
import { clientInWorker, IndexedDbStore, webPrimitives } from '@posthouse/client/web';
import * as program from '../../bench/browsers-program.ts';
const policy = trustedTypes.createPolicy('app', { createScriptURL: () => 'worker.js' });
const prepare = async ({ context, registry }, name) => {
  const network = new Network({ context, primitives: webPrimitives });
  const store = await IndexedDbStore.open(name);
  return { network, registry: staticRegistry(network, registry), transport: webTransport, store };
};
const inWorker = async (given) => {
  const client = await clientInWorker(new Worker(policy.createScriptURL('')), { ...given, store: 'worker' });
  return await client.setUp();
};
Object.assign(globalThis, { inWorker, prepare, program });`;

async function measureBrowser(name: (typeof engineNames)[number], url: string): Promise<Row> {
  await using browser = await openBrowser(name);
  const { run } = browser.page;
  const given = JSON.stringify({ context: network.context, registry });
  await browser.page.open(url);
  const row: Row = {};
  await run(`prepare(${given}, 'page').then((made) => { globalThis.options = made; })`);
  row.setUp = await run(
    'program.timed(async () => { globalThis.ann = await program.setUp(options); })',
  );
  const inPage = {
    invite: () => run<string>('ann.contacts.invite().then(({ text }) => text)'),
    approve: (peer: string) =>
      run(`ann.sync().then(() => ann.contacts.approve('${peer}')).then(() => 0)`),
  };
  const bob = await senderFor(inPage);
  const receive = `(async () => {
    let time = 0;
    const gap = await program.longestGap(async () => { time = await program.timed(() => ann.sync()); });
    return { time, gap };
  })()`;
  row.send = await run(`program.sendTime(ann, '${bob.id}', 20)`);
  for (const messages of [300, 1_000]) {
    await post(bob, await run('ann.id'), messages);
    const { time, gap } = await run<{ time: number; gap: number }>(receive);
    Object.assign(row, { [`receive${messages}`]: time, [`gap${messages}`]: gap });
  }
  row.idleGap = await run(`program.longestGap(() => program.idle(${row.receive1000}))`);
  row.reload = await run('program.reloadTime(options)');
  const { here, turns } = await run<{ here: number; turns: number }>(
    'program.verificationTimes(options, 80)',
  );
  Object.assign(row, { verify: here, verifyInTurns: turns });
  const filling = JSON.stringify({ peer: bob.id, count: values.stored });
  await run(`program.fill(options, { ...${filling}, account: ann.id })`);
  const lists = await run<{ median: number; most: number }>(`program.listTimes(ann, '${bob.id}')`);
  Object.assign(row, { list: lists.median, listMost: lists.most });
  // The same calls, to the account in a worker.
  await run(`inWorker(${given}).then((account) => { globalThis.ann = account; })`);
  const other = await senderFor(inPage);
  await post(other, await run('ann.id'), 1_000);
  const { time, gap } = await run<{ time: number; gap: number }>(receive);
  return { ...row, workerReceive1000: time, workerGap1000: gap };
}

const titles: Record<string, string> = {
  setUp: 'set-up',
  send: 'a message sent',
  reload: 'reload, 50 listed',
  receive300: '300 received',
  receive1000: '1,000 received',
  workerReceive1000: '1,000 received, in a worker',
  verify: 'a verification, calling thread',
  verifyInTurns: 'a verification, in turns',
  list: `50 of ${values.stored} listed, median`,
  listMost: `50 of ${values.stored} listed, most`,
  gap300: 'longest gap, 300 received',
  gap1000: 'longest gap, 1,000 received',
  workerGap1000: 'longest gap, client in a worker',
  idleGap: 'longest gap, idle',
};

const server = await serveApp(
  {
    page: await bundleForPage(page),
    worker: await bundleForPage(`import './src/web/worker/entry.ts';`),
  },
  { tls: join(data, 'tls'), relay: new URL(registry.relays[0].endpoint).origin },
);
const rows = new Map<string, Row>([['Node', await measureNode()]]);
for (const name of values.engines) {
  if (isMissing(name)) continue;
  process.stderr.write(`${name}\n`);
  rows.set(name, await measureBrowser(name, server.url));
}
await server[Symbol.asyncDispose]();
const node = rows.get('Node') ?? {};
console.log(`| milliseconds (and × Node) | ${[...rows.keys()].join(' | ')} |`);
console.log(`| :-- |${' --: |'.repeat(rows.size)}`);
for (const [key, title] of Object.entries(titles)) {
  const cells = [...rows.values()].map(({ [key]: value }) => {
    if (value === undefined) return '';
    const ratio = node[key] === undefined ? '' : ` (×${(value / node[key]).toFixed(1)})`;
    return `${value.toFixed(1)}${ratio}`;
  });
  console.log(`| ${title} | ${cells.join(' | ')} |`);
}
