/**
 * A program of its own that follows an account, started by {@link FollowingProgram}. It writes what
 * each event says to its output before it asks for the next one, and never ends by itself.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Network, staticRegistry } from '@posthouse/protocol';
import { parseJson } from '@posthouse/protocol/json';
import { nodePrimitives } from '@posthouse/protocol/node';
import { Client } from '../../src/index.ts';
import { NodeTransport, SqliteStore } from '../../src/node.ts';

const [context, relayFolder, storePath] = process.argv.slice(2) as [string, string, string];
const network = new Network({ context, primitives: nodePrimitives });
const file = (name: string) => readFileSync(join(relayFolder, name), 'utf8');
const client = await Client.open({
  network,
  registry: staticRegistry(network, parseJson(file('registry.json'))),
  transport: new NodeTransport({ ca: file('tls/ca.pem') }),
  store: SqliteStore.open(storePath),
});
const account = await client.account();
const { signal } = new AbortController();
console.log(JSON.stringify({ ready: true }));
for await (const event of account.follow({ signal })) {
  if (event.kind === 'message') console.log(JSON.stringify({ text: event.message.body?.text }));
  if (event.kind === 'connection') console.log(JSON.stringify({ connection: event.state }));
  if (event.kind === 'message-status') {
    console.log(JSON.stringify({ id: event.messageId, status: event.status }));
  }
}
