/**
 * What each runtime must do with the published packages: two accounts become contacts and exchange a
 * message, with the fast primitives and those of pages, with a store in memory and on SQLite.
 * Parameters: the folder of a relay for development, and a name for the files of this run.
 */
import { readFile } from 'node:fs/promises';
import { Client, MemoryStore } from '@posthouse/client';
import { readBody } from '@posthouse/client/content';
import { NodeTransport, nodePrimitives, SqliteStore } from '@posthouse/client/node';
import { Network, staticRegistry } from '@posthouse/protocol';
import { noblePrimitives } from '@posthouse/protocol/crypto';

const [folder = '', name = ''] = process.argv.slice(2);
const relays = JSON.parse(await readFile(`${folder}/registry.json`, 'utf8'));
const ca = await readFile(`${folder}/tls/ca.pem`, 'utf8');
const text = 'Hello, *world* &copy;';

async function story(primitives, makeStore) {
  const network = new Network({ context: relays.context, primitives });
  const registry = staticRegistry(network, relays);
  const transport = new NodeTransport({ ca });
  const stores = ['ann', 'ben'].map(makeStore);
  const clients = [];
  for (const store of stores) {
    clients.push(await Client.open({ network, registry, transport, store }));
  }
  const [ann, ben] = await Promise.all(clients.map((client) => client.setUp()));

  await ben.contacts.join((await ann.contacts.invite()).text);
  await ann.sync();
  await ann.contacts.approve(ben.id);
  await ben.sync();
  const stop = new AbortController();
  const following = firstMessage(ann, stop);
  await ben.messages.send(ann.id, { text, contentType: 'text/markdown' });
  const { body } = (await following).content;
  if (body.text !== text) throw new Error(`another text arrived: ${body.text}`);
  const [block] = readBody(body).blocks;
  if (!JSON.stringify(block).includes('©')) throw new Error('the parser reads something else');

  for (const one of [...clients, ...stores]) await one[Symbol.asyncDispose]();
  transport[Symbol.dispose]();
}

async function firstMessage(account, stop) {
  for await (const event of account.follow({ signal: stop.signal })) {
    if (event.kind !== 'message') continue;
    stop.abort();
    return event.message;
  }
  throw new Error('no message arrived');
}

await story(nodePrimitives, (who) => SqliteStore.open(`${folder}/${name}-${who}.sqlite`));
await story(noblePrimitives, () => new MemoryStore());
console.log('ok');
