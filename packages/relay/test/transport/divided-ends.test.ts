/** 0019: connections that their peers end at one moment. */
import { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { connect } from 'node:tls';
import { expect, test, vi } from 'vitest';
import { StepTurns } from '../../src/step-turns.ts';
import { divideEnds } from '../../src/transport/divided-ends.ts';
import { fullTurns, turn } from '../support/full-turns.ts';
import { servedRelay } from '../support/served-relay.ts';

/** Makes connections that take turns; counts those that were closed. */
function connections(count: number) {
  const turns = new StepTurns();
  let closed = 0;
  const sockets = Array.from({ length: count }, () => {
    const socket = new Duplex({ read() {}, write() {} });
    divideEnds({ socket, turns, owner: 'address 192.0.2.1' });
    return socket.resume().on('error', () => {});
  });
  for (const socket of sockets) {
    socket.on('end', () => socket.destroy()).on('close', () => (closed += 1));
  }
  return { sockets, closed: () => closed };
}

const readError = Object.assign(new Error('read ECONNRESET'), { syscall: 'read' });

test.each([
  ['closes', (socket: Duplex) => void socket.push(null)],
  ['resets', (socket: Duplex) => void socket.destroy(readError)],
])('of three that the peer %s, one ends in each turn', async (_, end) => {
  const { sockets, closed } = connections(3);
  using _full = fullTurns();
  for (const socket of sockets) end(socket);
  for (let before = 0; before < 3; before = closed()) {
    await turn();
    expect(closed() - before).toBeLessThanOrEqual(1);
  }
});

test('what arrived before the end is read before it, and nothing after it', async () => {
  const { sockets, closed } = connections(2);
  const [first, second] = sockets as [Duplex, Duplex];
  const read: string[] = [];
  for (const socket of sockets) socket.on('data', (data) => read.push(String(data)));
  using _full = fullTurns();
  for (const socket of sockets) {
    socket.push('last');
    socket.push(null);
  }
  while (closed() < 2) await turn();
  expect(read).toEqual(['last', 'last']);
  expect([first.readableEnded, second.readableEnded]).toEqual([true, true]);
});

test.each([
  ['the relay ends', undefined],
  ['the relay ends for an error', new Error('too slow')],
])('of three that %s, all end at once: more would be received', async (_, error) => {
  const { sockets, closed } = connections(3);
  using _full = fullTurns();
  for (const socket of sockets) socket.destroy(error);
  await turn();
  expect(closed()).toBe(3);
});

const relay = servedRelay();

test.each([
  ['closes', (socket: Socket) => void socket.destroy()],
  ['resets', (socket: Socket) => void socket.resetAndDestroy()],
])('a connection of a relay ends in a turn of its address when the peer %s it', async (_, end) => {
  const { hostname, port } = new URL(relay.server.https[0] as string);
  const socket = new Socket().connect(Number(port), hostname).on('error', () => {});
  const secure = connect({ socket, ca: relay.ca, servername: '' }).on('error', () => {});
  const answered = new Promise((resolve) => secure.once('data', resolve));
  secure.write('GET /svc/v1/relay/info HTTP/1.1\r\nHost: x\r\n\r\n');
  await answered;
  const run = vi.spyOn(StepTurns.prototype, 'run');
  using _run = { [Symbol.dispose]: () => run.mockRestore() };
  end(socket);
  while (run.mock.calls.length === 0) await turn();
  expect(run.mock.calls[0]?.[0]).toBe('address 127.0.0.1');
});
