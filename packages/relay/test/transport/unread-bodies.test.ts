/** 02 §18: what a body's bytes cost its address before the body has a reader. */
import { once } from 'node:events';
import type { IncomingMessage, Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { defaultLimits } from '../../src/limits.ts';
import { ByteAccounts } from '../../src/transport/byte-accounts.ts';
import type { ByteOwner } from '../../src/transport/byte-ledger.ts';
import { GatheredChunks } from '../../src/transport/gathered-chunks.ts';
import { createServer, type ServerParts } from '../../src/transport/http-server.ts';
import { ManualClock } from '../support/clock.ts';

const owner = { kind: 'address', id: '192.0.2.1' } as const;
const limits = { ...defaultLimits, receivedBytesPerAddress: 1_000 };

let bytes: ByteAccounts;
let server: Server;
let client: Socket;
let request: IncomingMessage;
/** Begins a request that no one reads, in chunks of one byte. */
beforeEach(async () => {
  const clock = new ManualClock();
  bytes = new ByteAccounts({ clock, limits });
  const clients = { of: () => owner.id };
  const parts = { context: { clock, limits }, bytes, clients, tls: undefined };
  const { promise, resolve } = Promise.withResolvers<IncomingMessage>();
  server = createServer(parts as unknown as ServerParts, resolve);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.on('error', () => {});
  client.write('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n');
  request = await promise;
});
afterEach(() => {
  client.destroy();
  server.close();
});

const turn = () => new Promise<void>((go) => setImmediate(go));

/** Sends so many bytes, each in a chunk of its own, and waits until they have arrived. */
async function send(count: number): Promise<void> {
  client.write('1\r\nx\r\n'.repeat(count));
  while (bytes.received.total < count && !request.destroyed) await turn();
}

/** Ends the connection, as a timeout would: the client's own end is noticed only when more is read. */
async function end(): Promise<void> {
  const gone = once(request.socket, 'close');
  request.socket.destroy();
  await gone;
}

test('02 §18: what waits of a body counts for its address until the request is gone', async () => {
  await send(400);
  expect(bytes.received.total).toBe(400);
  await end();
  expect(bytes.received.total).toBe(0);
});

test('02 §18: what waits of a body ends first if its address holds too much, and for no other', async () => {
  await send(400);
  const hold = (one: ByteOwner, count: number) => bytes.received.open(one, () => {}).add(count);
  expect(hold({ ...owner, id: '192.0.2.2' }, 1_000)).toBe(true);
  expect(hold(owner, 600)).toBe(true);
  expect(request.socket.destroyed).toBe(false);
  expect(hold(owner, 1)).toBe(true);
  expect(request.socket.destroyed).toBe(true);
});

test('02 §18: what waits of a body is given back when the body has a reader', async () => {
  await send(400);
  GatheredChunks.of(request)?.readBy({ waiting: () => {} });
  expect(bytes.received.total).toBe(0);
});

test.each([
  [1_000, false],
  [1_001, true],
])(
  '02 §18: of a limit of 1,000 bytes, %i that wait end the connection: %s',
  async (count, ends) => {
    await send(count);
    expect(request.socket.destroyed).toBe(ends);
    expect(bytes.received.total).toBe(ends ? 0 : count);
  },
);

test('02 §18: chunks that came without a reader are charged when the request is gone', async () => {
  await send(400);
  await end();
  const left = limits.addressBytesBurst - 400 * limits.bodyChunkCharge;
  // The last byte that it may send.
  expect(bytes.charge(owner, left - 1)).toBe(0);
  expect(bytes.charge(owner, 1)).toBeGreaterThan(0);
});
