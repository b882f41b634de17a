/** 02 §18: what arrived on a WebSocket counts until it is read. */
import { beforeEach, describe, expect, test } from 'vitest';
import { CallTurns } from '../../src/dispatch/call-turns.ts';
import { defaultLimits } from '../../src/limits.ts';
import { ByteAccounts } from '../../src/transport/byte-accounts.ts';
import type { ByteOwner } from '../../src/transport/byte-ledger.ts';
import { IncomingBytes, type IncomingParts } from '../../src/transport/incoming-bytes.ts';
import { ManualClock } from '../support/clock.ts';

const stranger: ByteOwner = { kind: 'address', id: '192.0.2.1' };
const account: ByteOwner = { kind: 'account', id: 'ann' };

let bytes: ByteAccounts;
let read: number;
let refused: boolean;
let incoming: IncomingBytes;
let clock: ManualClock;
let parts: IncomingParts;
beforeEach(() => {
  clock = new ManualClock();
  const limits = { ...defaultLimits, receivedBytesPerAddress: 60_000 };
  const context = {
    clock,
    limits: { ...limits, addressBytes: 10_240, addressBytesBurst: 102_400 },
  };
  bytes = new ByteAccounts(context);
  read = 0;
  refused = false;
  parts = {
    ...{ context, bytes, owner: stranger },
    socket: { pause: () => {}, resume: () => {} },
    turns: new CallTurns(context.clock),
    read: (chunk) => {
      read += chunk.length;
    },
    refused: () => {
      refused = true;
    },
    tooSlow: () => {},
  };
  incoming = new IncomingBytes(parts);
});

/** A masked text frame of a client (RFC 6455 §5.2). */
function frame(length: number): Buffer {
  const header = Buffer.from([0x81, 0x80 | 126, length >> 8, length & 0xff, 0, 0, 0, 0]);
  return Buffer.concat([header, Buffer.alloc(length, 'x')]);
}

/** Empty pings: more of them than the allowance permits. */
const pings = Buffer.concat(
  Array.from({ length: 1_000 }, () => Buffer.from([0x89, 0x80, 0, 0, 0, 0])),
);

const turn = () => new Promise<void>((go) => setImmediate(go));

test('02 §18: a message counts whole until its last frame is read', async () => {
  const text = frame(40_000);
  incoming.receive(text.subarray(0, 39_000));
  expect(bytes.received.total).toBeGreaterThanOrEqual(39_000);
  incoming.receive(text.subarray(39_000));
  expect(read).toBe(39_000);
  expect(bytes.received.total).toBeGreaterThanOrEqual(text.length);
  while (read < text.length) await turn();
  expect(bytes.received.total).toBe(0);
  expect(refused).toBe(false);
});

test('02 §18: frames that wait for their turn count for the account once it is bound', async () => {
  incoming.receive(frame(40_000));
  incoming.moveTo(account);
  expect(read).toBe(0);
  expect(bytes.received.hasRoom(stranger, 60_000)).toBe(true);
  while (read < 40_000) await turn();
  expect(bytes.received.total).toBe(0);
});

test('02 §18: of small frames that arrived together, the allowance of 1,024 bytes each is read; the rest waits', async () => {
  incoming.receive(pings);
  for (let count = 0; count < 300; count += 1) await turn();
  // One may have had its turn when the allowance ended.
  expect(read / 6).toBeGreaterThan(80);
  expect(read / 6).toBeLessThanOrEqual(102);
  const before = read;
  clock.advance(2);
  for (let count = 0; count < 300; count += 1) await turn();
  expect((read - before) / 6).toBeGreaterThan(0);
  expect((read - before) / 6).toBeLessThanOrEqual(22);
  incoming.readToEnd();
  while (read < pings.length) await turn();
  expect(refused).toBe(false);
});

test('02 §18: of frames that wait during a debt, none is read or held after the end of the connection', async () => {
  incoming.receive(pings);
  for (let count = 0; count < 300; count += 1) await turn();
  expect(incoming.isPaused).toBe(true);
  const before = read;
  incoming[Symbol.dispose]();
  clock.advance(60);
  for (let count = 0; count < 300; count += 1) await turn();
  expect(read).toBe(before);
  expect(bytes.received.total).toBe(0);
});

test('02 §18: after a debt, at most four connections of one owner go on in a turn, until it owes again', async () => {
  bytes.charge(stranger, 200_000);
  let resumed = 0;
  const many = Array.from({ length: 100 }, () => {
    const connection = new IncomingBytes({
      ...parts,
      socket: {
        pause: () => {},
        resume: () => {
          resumed += 1;
          queueMicrotask(() => connection.receive(frame(50_000)));
        },
      },
      refused: () => {},
    });
    connection.pause(1);
    return connection;
  });
  // The debt is at most a burst, which takes ten seconds.
  for (let second = 0; second < 12; second += 1) {
    clock.advance(1);
    for (let count = 0; count < 100; count += 1) await turn();
  }
  expect(resumed).toBeGreaterThan(0);
  expect(resumed).toBeLessThanOrEqual(4);
  for (const connection of many) connection[Symbol.dispose]();
});

test('02 §18: once an owner owes, its other connections receive nothing either', async () => {
  const other = new IncomingBytes(parts);
  const newcomer = new IncomingBytes({ ...parts, owner: account });
  await turn();
  bytes.charge(stranger, 200_000);
  expect([incoming, other, newcomer].map(({ isPaused }) => isPaused)).toEqual([true, true, false]);
  for (let count = 0; count < 12; count += 1) {
    clock.advance(1);
    for (let turns = 0; turns < 5; turns += 1) await turn();
  }
  expect([incoming.isPaused, other.isPaused]).toEqual([false, false]);
});

test('02 §18: a connection that goes on is not paused by others before what has arrived is received', async () => {
  const other = new IncomingBytes(parts);
  other.pause(1);
  await turn();
  clock.advance(1);
  while (other.isPaused) await turn();
  bytes.charge(stranger, 200_000);
  expect(other.isPaused).toBe(false);
  await turn();
  bytes.charge(stranger, 1);
  expect(other.isPaused).toBe(true);
});

test('02 §18: a connection that has a session or ended is not paused for its address', async () => {
  const [bound, ended] = [new IncomingBytes(parts), new IncomingBytes(parts)];
  await turn();
  bound.moveTo(account);
  ended[Symbol.dispose]();
  await turn();
  bytes.charge(stranger, 200_000);
  expect([bound.isPaused, ended.isPaused]).toEqual([false, false]);
  bytes.charge(account, 100 * 1_048_576);
  expect([bound.isPaused, ended.isPaused]).toEqual([true, false]);
});

test('02 §18: a connection that gets a session does not wait for what its address owes', async () => {
  incoming.pause(5);
  expect(incoming.isPaused).toBe(true);
  incoming.moveTo(account);
  expect(incoming.isPaused).toBe(false);
  clock.advance(10);
  for (let count = 0; count < 5; count += 1) await turn();
  expect(incoming.isPaused).toBe(false);
});

test('02 §18: a connection that waited for room goes on only if its owner owes nothing by then', async () => {
  const connection = new IncomingBytes({ ...parts, owner: account });
  for (let count = 0; count < 3; count += 1) connection.receive(frame(50_000));
  expect(connection.isPaused).toBe(true);
  bytes.charge(account, 100 * 1_048_576);
  for (let count = 0; count < 20; count += 1) await turn();
  expect(read).toBeGreaterThanOrEqual(150_000);
  expect(connection.isPaused).toBe(true);
  clock.advance(20);
  for (let count = 0; count < 5; count += 1) await turn();
  expect(connection.isPaused).toBe(false);
});

describe('02 §18: records of TLS', () => {
  /** Bytes that the address may still send. */
  const left = () => {
    let count = 0;
    while (bytes.charge(stranger, 256) === 0) count += 1;
    return count * 256;
  };

  test('cost 256 bytes each, but the one that a frame ends in', () => {
    const text = frame(1_016);
    incoming.receive(text.subarray(0, 300), 101);
    incoming.receive(text.subarray(300), 1);
    expect(left()).toBe(Math.floor((102_400 - 101 * 256 - 724) / 256) * 256);
  });

  test('what arrives while nothing is read counts until it is read', () => {
    incoming.hold(50_000);
    expect(bytes.received.total).toBe(50_000);
    incoming.moveTo(account);
    expect(bytes.received.hasRoom(stranger, 60_000)).toBe(true);
    incoming.hold(-20_000);
    expect(bytes.received.total).toBe(30_000);
    expect(refused).toBe(false);
    incoming[Symbol.dispose]();
    expect(bytes.received.total).toBe(0);
  });

  test('it ends before a request of a neighbour does', () => {
    incoming.hold(59_000);
    const neighbour = new IncomingBytes({ ...parts, refused: () => expect.unreachable() });
    expect(neighbour.holdRequest().add(4_096)).toBe(true);
    expect(refused).toBe(true);
    expect(bytes.received.total).toBe(4_096);
  });

  test('if that is too much, the connection is refused', () => {
    incoming.hold(60_000);
    expect(refused).toBe(false);
    incoming.hold(1);
    expect(refused).toBe(true);
    expect(bytes.received.total).toBe(0);
  });
});
