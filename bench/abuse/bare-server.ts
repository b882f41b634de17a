/**
 * The least that can be attacked: the relay's port without a relay. HTTP and WebSocket of Node over the
 * same TLS; each request gets the same short answer. It knows no session, stores nothing and has no
 * limits but those of Node and `ws`. Another client's calls to it under an attack are what the attack
 * costs before any relay does something for it.
 *
 *   node bench/abuse/bare-server.ts FOLDER    # FOLDER/server.pem and server.key; prints `ready PORT`
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { limits } from '@posthouse/protocol';
import { WebSocketServer } from 'ws';

const folder = process.argv[2] as string;
/** A page of a timeline with nothing in it: what the other client asks for. */
const result = '{"items":[],"certificates":[],"has_more":false}';

const server = createServer({
  cert: readFileSync(join(folder, 'server.pem')),
  key: readFileSync(join(folder, 'server.key')),
  minVersion: 'TLSv1.2',
});
server.on('request', (request, response) => {
  request.resume().on('end', () => response.end('{}'));
});
const webSockets = new WebSocketServer({
  server,
  perMessageDeflate: false,
  maxPayload: limits.webSocketMessageBytes,
  skipUTF8Validation: true,
});
webSockets.on('connection', (socket) => {
  socket.on('message', (data) => {
    const id = /"id":([0-9]+)/.exec((data as Buffer).toString('latin1', 0, 200))?.[1] ?? 'null';
    socket.send(`{"jsonrpc":"2.0","id":${id},"result":${result}}`);
  });
  socket.on('error', () => socket.terminate());
});
process.once('SIGTERM', () => process.exit());
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`ready ${(server.address() as AddressInfo).port}\n`);
});
