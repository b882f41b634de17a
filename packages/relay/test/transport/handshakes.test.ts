import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { defaultLimits } from '../../src/limits.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { ClientAddresses } from '../../src/transport/client-addresses.ts';
import { missingOfClientHello } from '../../src/transport/client-hello.ts';
import { Handshakes } from '../../src/transport/handshakes.ts';
import { ManualClock } from '../support/clock.ts';
import { ServedRelay } from '../support/served-relay.ts';

/** 02 §18: when the TLS handshake of a new connection begins. */

/** A ClientHello of no content, in one record. */
const hello = Buffer.from('160301000401000000', 'hex');

let clock: ManualClock;
let server: Server;
let clients: Socket[];
let accepted: Socket[];
let begun: string[];
let begunPorts: (number | undefined)[];
let handshakes: Handshakes;
let metrics: Metrics;

function listen(limits: object): void {
  const context = {
    ...{ clock, metrics, log: pino({ level: 'silent' }) },
    limits: { ...defaultLimits, addressHandshakeRate: 1, addressHandshakeBurst: 2, ...limits },
  };
  handshakes = new Handshakes({
    context,
    clients: new ClientAddresses(['127.0.0.9']),
    begin: (socket) => {
      begun.push(socket.remoteAddress ?? '');
      begunPorts.push(socket.remotePort);
    },
  });
}

beforeEach(async () => {
  clock = new ManualClock();
  metrics = new Metrics();
  [clients, accepted, begun, begunPorts] = [[], [], [], []];
  server = createServer((socket) => {
    accepted.push(socket);
    handshakes.add(socket);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(async () => {
  for (const socket of [...clients, ...accepted]) socket.destroy();
  server.close();
  await once(server, 'close');
});

/** Connects from an address of loopback, and sends something. */
async function open(last: number, bytes: Buffer = hello): Promise<Socket> {
  const { port } = server.address() as AddressInfo;
  const socket = connect({ host: '127.0.0.1', port, localAddress: `127.0.0.${last}` });
  socket.on('error', () => {});
  clients.push(socket);
  await once(socket, 'connect');
  socket.write(bytes);
  return socket;
}

/** Lets the event loop turn a few times, so that what is on its way arrives. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await new Promise((go) => setImmediate(go));
}

/** Returns how often the handshake of each address has begun, in their order. */
async function beginnings(): Promise<Record<string, number>> {
  await turns();
  return Object.fromEntries(
    [...new Set(begun)].map((one) => [one, begun.filter((each) => each === one).length]),
  );
}

describe('02 §18: handshakes', () => {
  test('begin at the rate of their address, and do not delay those of another', async () => {
    listen({});
    for (let count = 0; count < 4; count += 1) await open(2);
    expect(await beginnings()).toEqual({ '127.0.0.2': 2 });
    await open(3);
    expect(await beginnings()).toEqual({ '127.0.0.2': 2, '127.0.0.3': 1 });
    clock.advance(1);
    expect(await beginnings()).toEqual({ '127.0.0.2': 3, '127.0.0.3': 1 });
    clock.advance(1);
    expect(await beginnings()).toEqual({ '127.0.0.2': 4, '127.0.0.3': 1 });
  });

  test('of a trusted proxy have no rate of their own', async () => {
    listen({});
    for (let count = 0; count < 4; count += 1) await open(9);
    expect(await beginnings()).toEqual({ '127.0.0.9': 4 });
  });

  test('begin at the rate of the process, in rotation of their addresses', async () => {
    listen({ handshakeRate: 1, handshakeBurst: 1, addressHandshakeBurst: 10 });
    for (const last of [2, 2, 2, 2, 3, 4]) {
      await open(last);
      await turns();
    }
    for (let count = 0; count < 5; count += 1) {
      clock.advance(1);
      await turns();
    }
    const order = begun.map((address) => address.at(-1)).join('');
    expect(order).toBe('223422');
  });

  test('of one address begin with the newest; if too many wait, the oldest ends', async () => {
    listen({ addressHandshakesWaiting: 3 });
    for (let count = 0; count < 5; count += 1) {
      await open(2);
      await turns();
    }
    expect(begun).toHaveLength(2);
    const reason = 'too many new connections of one address';
    expect(metrics.value('connections_refused', { reason })).toBe(0);
    await open(2);
    await once(clients[2] as Socket, 'close');
    expect(metrics.value('connections_refused', { reason })).toBe(1);
    for (let count = 0; count < 3; count += 1) {
      clock.advance(1);
      await turns();
    }
    const places = accepted.map(({ remotePort }) => remotePort);
    expect(begunPorts.map((port) => places.indexOf(port))).toEqual([0, 1, 5, 4, 3]);
  });

  test('of a neighbour begin at the next turn of its address, whatever number waits', async () => {
    listen({});
    for (let count = 0; count < 60; count += 1) await open(2);
    await turns();
    expect(begun).toHaveLength(2);
    const neighbour = await open(2);
    await turns();
    clock.advance(1);
    await turns();
    expect(begunPorts).toHaveLength(3);
    expect(begunPorts.at(-1)).toBe(neighbour.localPort);
  });

  test('that are not over end after handshakeTimeout', async () => {
    listen({ handshakeTimeout: 10_000 });
    for (let count = 0; count < 2; count += 1) await open(2);
    await turns();
    handshakes.finished(accepted[1] as Socket);
    clock.advance(9);
    expect(accepted.map(({ destroyed }) => destroyed)).toEqual([false, false]);
    clock.advance(1);
    expect(accepted.map(({ destroyed }) => destroyed)).toEqual([true, false]);
  });

  test('that are not over are limited for each address and in all', async () => {
    listen({
      ...{ addressHandshakeBurst: 10, addressHandshakesUnfinished: 3, handshakesUnfinished: 5 },
    });
    const ended = () => accepted.flatMap(({ destroyed }, place) => (destroyed ? [place] : []));
    for (const last of [2, 2, 2, 3]) {
      await open(last);
      await turns();
    }
    expect(ended()).toEqual([]);
    // The fourth of an address ends its oldest.
    await open(2);
    await turns();
    expect(ended()).toEqual([0]);
    await open(3);
    await turns();
    expect(ended()).toEqual([0]);
    // The sixth in all ends the oldest of the address with most.
    await open(4);
    await turns();
    expect(ended()).toEqual([0, 1]);
    handshakes.finished(accepted[2] as Socket);
    await open(5);
    await turns();
    expect(ended()).toEqual([0, 1]);
    await open(6);
    await turns();
    expect(ended()).toEqual([0, 1, 3]);
    expect(begun).toHaveLength(9);
    const reason = 'too many unfinished handshakes';
    expect(metrics.value('connections_refused', { reason })).toBe(3);
  });

  test('begin when the first message is whole, in one record or several', async () => {
    listen({});
    const socket = await open(2, hello.subarray(0, 7));
    expect(await beginnings()).toEqual({});
    socket.write(hello.subarray(7));
    expect(await beginnings()).toEqual({ '127.0.0.2': 1 });
    const split = Buffer.from('1603010003010000' + '160301000301aabb', 'hex');
    const other = await open(3, split.subarray(0, 10));
    expect(await beginnings()).toEqual({ '127.0.0.2': 1 });
    other.write(split.subarray(10));
    expect(await beginnings()).toEqual({ '127.0.0.2': 1, '127.0.0.3': 1 });
  });

  test('are looked for seldom while the first message arrives byte by byte', () => {
    const record = (byte: number) => [22, 3, 1, 0, 1, byte];
    const message = [1, 0, 8, 0, ...Buffer.alloc(2_048)];
    const bytes = Buffer.from(message.flatMap(record));
    let looks = 0;
    let length = 1;
    for (let missing: number | undefined = 1; missing !== 0; looks += 1) {
      missing = missingOfClientHello(bytes.subarray(0, length)) as number;
      expect(missing).toBeLessThanOrEqual(bytes.length - length);
      length += missing;
    }
    expect(length).toBe(bytes.length);
    expect(looks).toBeLessThan(100);
  });

  test.each([
    ['is none', Buffer.from('GET / HTTP/1.1\r\n')],
    ['says that it is larger', Buffer.from('16030100040100ffff', 'hex')],
    ['is another message', Buffer.from('160301000402000000', 'hex')],
    [
      'is larger than clientHelloBytes',
      Buffer.alloc(20_000, Buffer.from('16030100ff01004e20', 'hex')),
    ],
    ['is in an empty record', Buffer.from('1603010000', 'hex')],
  ])('do not begin if the first message %s: the connection ends', async (_what, bytes) => {
    listen({});
    await once((await open(2, bytes)).resume(), 'close');
    expect(begun).toEqual([]);
  });

  test('of which nothing arrives end after requestTimeout', async () => {
    listen({});
    const socket = await open(2, hello.subarray(0, 3));
    await turns();
    clock.advance(29);
    await turns();
    expect(accepted[0]?.destroyed).toBe(false);
    clock.advance(1);
    await once(socket.resume(), 'close');
    expect(begun).toEqual([]);
  });

  test('of peers that left cost nothing of their address', async () => {
    listen({});
    for (let count = 0; count < 2; count += 1) await open(2);
    expect(await beginnings()).toEqual({ '127.0.0.2': 2 });
    for (let count = 2; count < 12; count += 1) {
      const left = await open(2);
      await turns();
      left.destroy();
      await once(accepted[count] as Socket, 'close');
    }
    await open(2);
    await turns();
    clock.advance(1);
    expect(await beginnings()).toEqual({ '127.0.0.2': 3 });
  });

  test('of peers that left do not begin, and cost nothing of the process', async () => {
    listen({ handshakeRate: 1, handshakeBurst: 1 });
    await open(2);
    const left = await open(3);
    await turns();
    left.destroy();
    await once(accepted[1] as Socket, 'close');
    await open(4);
    await turns();
    clock.advance(1);
    expect(await beginnings()).toEqual({ '127.0.0.2': 1, '127.0.0.4': 1 });
  });
});

describe('02 §18: a relay', () => {
  test('ends a handshake that has begun and is not over in time, and no other', async () => {
    await using relay = await ServedRelay.start({ limits: { handshakeTimeout: 5_000 } });
    const { port, ca } = relay;
    const finished = connectTls({ host: '127.0.0.1', port, ca }).on('error', () => {});
    await once(finished, 'secureConnect');
    const tcp = connect({ host: '127.0.0.1', port }).on('error', () => {});
    // Sends the first message of a client, and passes no answer on to it.
    const halfOpen = new Duplex({
      write: (bytes, _encoding, done) => void tcp.write(bytes, done),
      read: () => {},
    });
    const client = connectTls({ socket: halfOpen, ca }).on('error', () => {});
    await once(tcp, 'data');
    relay.clock.advance(4.9);
    await turns();
    expect(tcp.closed).toBe(false);
    relay.clock.advance(0.1);
    await once(tcp.resume(), 'close');
    client.destroy();
    finished.resume().write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    const [answer] = await once(finished, 'end').then(() => [finished.bytesRead]);
    expect(answer).toBeGreaterThan(0);
    await once(finished, 'close');
  });

  test('finishes handshakes that had to wait, and ends those that wait when it stops', async () => {
    const limits = { addressHandshakeBurst: 1, addressHandshakeRate: 1 };
    await using relay = await ServedRelay.start({ limits });
    const { port, ca } = relay;
    const secure: TLSSocket[] = [];
    const dial = async () => {
      const socket = connectTls({ host: '127.0.0.1', port, ca }).on('error', () => {});
      socket.on('secureConnect', () => secure.push(socket));
      await once(socket, 'connect');
      return socket;
    };
    const first = await dial();
    await once(first, 'secureConnect');
    const others = [await dial(), await dial()];
    await turns();
    expect(secure).toEqual([first]);
    relay.clock.advance(1);
    while (secure.length === 1) await turns();
    const [, second] = secure;
    second?.resume().write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    await once(second as TLSSocket, 'close');
    first.destroy();
    const third = others.find((other) => other !== second) as TLSSocket;
    const ended = new Promise((resolve) => third.resume().once('close', resolve));
    await relay.stop();
    await ended;
    expect(secure).toEqual([first, second]);
  });
});
