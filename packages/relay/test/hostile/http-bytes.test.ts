/** Bytes of strangers that are HTTP, nearly HTTP, or none, on connections that end at any place. */
import { once } from 'node:events';
import { connect } from 'node:tls';
import { expect, test } from 'vitest';
import { chanceOf, seed } from '../support/chance.ts';
import { ServedRelay } from '../support/served-relay.ts';

const connections = Number(process.env.TEST_HOSTILE_CONNECTIONS ?? 400);
const atOnce = 20;

const chance = chanceOf(seed);
const below = (most: number) => Math.floor(chance() * most);
const oneOf = <T>(all: readonly T[]): T => all[below(all.length)] as T;
const turn = () => new Promise<void>((go) => setImmediate(go));

const host = 'Host: x\r\n';
const json = 'Content-Type: application/json\r\n';
const path = () =>
  oneOf(['/', '/nothing', '/openrpc.json', '/svc/v1/relay/info', '/svc/v1/auth/challenge']);
const request = (method: string, headers = '', body = '') =>
  `${method} ${path()} HTTP/1.1\r\n${host}${headers}\r\n${body}`;

function sized(): string {
  const length = below(oneOf([10, 1_000, 70_000, 300_000]));
  const sent = oneOf([length, length, below(length + 1)]);
  return request('POST', `${json}Content-Length: ${length}\r\n`, 'a'.repeat(sent));
}

function chunked(): string {
  const chunks = Array.from({ length: below(40) }, () => {
    const length = 1 + below(oneOf([3, 5_000]));
    const extension = oneOf(['', '', `;a=${'b'.repeat(below(3_000))}`]);
    return `${length.toString(16)}${extension}\r\n${'x'.repeat(length)}\r\n`;
  });
  const end = oneOf([
    ...['0\r\n\r\n', '0\r\n\r\n', '0\r\nT: 1\r\n\r\n', 'zz\r\n', '', '5\r\nab'],
    `1;${'a'.repeat(20_000)}\r\nx\r\n`,
  ]);
  return request('POST', `${json}Transfer-Encoding: chunked\r\n`, chunks.join('') + end);
}

function upgrade(): string {
  const headers =
    'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n' +
    oneOf(['', '', 'Content-Length: 3\r\n']);
  return `GET /svc/v1 HTTP/1.1\r\n${host}${headers}\r\n${'\x89\x80aaaa'.repeat(below(30))}`;
}

const kinds: readonly (() => string)[] = [
  () => request('GET'),
  () => request('HEAD'),
  () => request('GET', `Z: ${'z'.repeat(below(15_000))}\r\n`),
  () =>
    request('POST', `Expect: ${oneOf(['100-continue', 'x'])}\r\nContent-Length: 5\r\n`, 'hello'),
  () => request('CONNECT'),
  () => request('PURGE'),
  () => 'GET / HTTP/1.0\r\n\r\n',
  () => String.fromCharCode(...Array.from({ length: below(300) }, () => below(256))),
  ...[sized, sized, chunked, chunked, chunked, upgrade],
  // What a WebSocket begins with has come with a body.
  () => sized() + upgrade(),
  () => chunked() + upgrade(),
];

/** One connection: some texts in some pieces, read or not, then its end. */
async function send(relay: ServedRelay): Promise<void> {
  const { hostname, port } = new URL(relay.server.https[0] as string);
  const socket = connect({ host: hostname, port: Number(port), ca: relay.ca });
  socket.on('error', () => {});
  await once(socket, 'secureConnect');
  if (chance() < 0.7) socket.resume();
  const count = 1 + below(oneOf([2, 6, 30]));
  const bytes = Buffer.from(Array.from({ length: count }, () => oneOf(kinds)()).join(''), 'latin1');
  const pieces = oneOf([1, 1, 2, 5, 20]);
  for (let piece = 0; piece < pieces && !socket.destroyed; piece += 1) {
    const [from, to] = [piece, piece + 1].map((end) => Math.floor((end * bytes.length) / pieces));
    socket.write(bytes.subarray(from, to));
    for (let turns = below(6); turns > 0; turns -= 1) await turn();
  }
  if (chance() < 0.3) socket.end();
  for (let turns = below(oneOf([5, 60])); turns > 0; turns -= 1) await turn();
  socket.destroy();
}

test('02 §3.2, §18: whatever arrives on connections of strangers, the relay answers others, also later', async () => {
  await using relay = await ServedRelay.start();
  for (let sent = 0; sent < connections; sent += atOnce) {
    await Promise.all(Array.from({ length: atOnce }, () => send(relay)));
    // Past the deadlines of bodies and answers; an error that no one catches fails this run.
    relay.clock.advance(31);
    await turn();
  }
  const answer = await relay.http().call('relay.info', {});
  expect(answer.status).toBe(200);
});
