/** 02 §18: what requests of one HTTP connection hold while they wait for the answer before theirs. */
import { EventEmitter, once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { Readable } from 'node:stream';
import { pino } from 'pino';
import { beforeEach, expect, test, vi } from 'vitest';
import { defaultLimits } from '../../src/limits.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { ByteAccounts } from '../../src/transport/byte-accounts.ts';
import type { ClientAddresses } from '../../src/transport/client-addresses.ts';
import { GatheredChunks } from '../../src/transport/gathered-chunks.ts';
import { createServer, type ServerParts } from '../../src/transport/http-server.ts';
import { PipelinedRequests } from '../../src/transport/pipelined-requests.ts';
import { ManualClock } from '../support/clock.ts';

const limits = { ...defaultLimits, receivedBytesPerAddress: 100_000 };
const charge = limits.waitingRequestCharge;
let bytes: ByteAccounts;
let handled: IncomingMessage[];
let pipelined: PipelinedRequests;
const clients = { of: () => '192.0.2.1' } as unknown as ClientAddresses;
const socket = { destroyed: false, destroy: vi.fn() };
beforeEach(() => {
  bytes = new ByteAccounts({ clock: new ManualClock(), limits });
  handled = [];
  socket.destroy.mockClear();
  pipelined = new PipelinedRequests({
    ...{ context: { limits }, bytes, handle: (request) => handled.push(request) },
    clients,
  });
});

function add() {
  const request = Object.assign(new Readable({ read: () => {} }), { socket });
  new GatheredChunks(request);
  const response = new EventEmitter();
  pipelined.add(request as unknown as IncomingMessage, response as unknown as ServerResponse);
  return { request, response };
}

test('what arrives of the body of a request that waits counts until its turn', () => {
  const first = add();
  const second = add();
  first.request.push(Buffer.alloc(500));
  expect(bytes.received.total).toBe(charge);
  second.request.push(Buffer.alloc(30_000));
  second.request.push(Buffer.alloc(1));
  expect(bytes.received.total).toBe(charge + 30_001);
  first.response.emit('close');
  expect(handled).toEqual([first.request, second.request]);
  expect(bytes.received.total).toBe(0);
  second.request.push(Buffer.alloc(30_000));
  expect(bytes.received.total).toBe(0);
  expect(socket.destroy).not.toHaveBeenCalled();
});

test('if that is too much, the connection ends', () => {
  const first = add();
  const second = add();
  second.request.push(Buffer.alloc(100_000 - charge));
  expect(socket.destroy).not.toHaveBeenCalled();
  second.request.push(Buffer.alloc(1));
  expect(socket.destroy).toHaveBeenCalled();
  socket.destroyed = true;
  first.response.emit('close');
  socket.destroyed = false;
  expect(handled).toEqual([first.request]);
  expect(bytes.received.total).toBe(0);
});

test('02 §18: a request that waits for its turn counts once', () => {
  const { pipelinedRequests } = limits;
  const responses = Array.from({ length: pipelinedRequests }, () => add().response);
  // Another owner has all of this turn.
  let isWaiting = true;
  bytes.httpTurns.run('other', () => isWaiting);
  responses[0]?.emit('close');
  expect(handled).toHaveLength(1);
  const last = add();
  expect(bytes.received.total).toBe(charge * pipelinedRequests);
  isWaiting = false;
  expect(last.response.listenerCount('close')).toBe(0);
});

test('02 §18: while a peer reads nothing of an answer, its next request does not begin', async () => {
  const log = pino({ level: 'silent' });
  const context = { clock: new ManualClock(), limits, log, metrics: new Metrics() };
  const parts = { context, clients, bytes, tls: undefined } as Partial<ServerParts> as ServerParts;
  // More than the buffers of both sockets have room for.
  const page = Buffer.alloc(67_108_864);
  const answers: ServerResponse[] = [];
  /** For each request, whether the answers before it were flushed when it began. */
  const flushed: boolean[] = [];
  const server = createServer(parts, (_, response) => {
    flushed.push(answers.every(({ writableFinished }) => writableFinished));
    answers.push(response);
    response.end(page);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const began = once(server, 'request');
  const peer = connect((server.address() as AddressInfo).port, '127.0.0.1');
  peer.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(3));
  await began;
  for (let turn = 0; turn < 50; turn += 1) await new Promise((go) => setImmediate(go));
  expect(flushed).toHaveLength(1);
  expect(answers[0]?.writableFinished).toBe(false);
  let received = 0;
  for await (const data of peer) {
    received += (data as Buffer).length;
    if (received >= 3 * page.length) break;
  }
  expect(flushed).toEqual([true, true, true]);
  server.close();
});
