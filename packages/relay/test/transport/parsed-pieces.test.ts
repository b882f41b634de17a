/** 02 §18: what arrives on an HTTP connection is parsed in pieces, and only while the connection is read. */
import type { IncomingMessage } from 'node:http';
import { Duplex } from 'node:stream';
import { beforeEach, expect, test, vi } from 'vitest';
import { defaultLimits } from '../../src/limits.ts';
import { ByteAccounts } from '../../src/transport/byte-accounts.ts';
import type { ByteOwner } from '../../src/transport/byte-ledger.ts';
import { GatheredChunks } from '../../src/transport/gathered-chunks.ts';
import { ParsedPieces } from '../../src/transport/parsed-pieces.ts';
import { ManualClock } from '../support/clock.ts';

const owner = { kind: 'address', id: '192.0.2.1' } as const;
const limits = {
  ...defaultLimits,
  receivedBytesPerAddress: 100_000,
  receivedBytesPerAccount: 100_000,
};
const turn = () => new Promise<void>((go) => setImmediate(go));

const clock = new ManualClock();
const context = { clock, limits };
const late = vi.fn();

let bytes: ByteAccounts;
let socket: Duplex;
let pieces: ParsedPieces;
let parsed: Buffer[];
let parse: (piece: Buffer) => void;
beforeEach(async () => {
  bytes = new ByteAccounts(context);
  parsed = [];
  parse = () => {};
  socket = new Duplex({ read: () => {}, write: () => {} });
  // What Node's server does.
  socket.on('data', (piece) => {
    parsed.push(piece);
    parse(piece);
  });
  pieces = new ParsedPieces({ context, bytes, owner, isProxy: false, socket, late });
  await turn();
});

const text = Buffer.from(Array.from({ length: 40_000 }, (_, index) => index % 251));
const all = () => Buffer.concat(parsed);

/** Lets all turns pass. */
async function settle(): Promise<void> {
  for (let count = 0; count < 20; count += 1) await turn();
}

test('the pieces have 8,192 bytes at most, in their order', async () => {
  socket.push(text);
  await settle();
  expect(parsed.map(({ length }) => length)).toEqual([...Array(4).fill(8_192), 7_232]);
  expect(all()).toEqual(text);
  expect(bytes.received.total).toBe(0);
});

test('while it is paused what is left waits, is held, and nothing more is asked for', async () => {
  parse = () => socket.pause();
  expect(socket.push(text)).toBe(false);
  await settle();
  expect(parsed).toHaveLength(1);
  expect(bytes.received.total).toBe(text.length);
  parse = () => {};
  socket.resume();
  await settle();
  expect(all()).toEqual(text);
  expect(bytes.received.total).toBe(0);
});

test('if too much is left, the connection ends', async () => {
  socket.pause();
  socket.push(Buffer.alloc(100_000));
  expect(socket.destroyed).toBe(false);
  socket.push(Buffer.alloc(2_000));
  expect(socket.destroyed).toBe(true);
  await turn();
  expect(bytes.received.total).toBe(0);
});

test('the end follows what is left', async () => {
  parse = () => socket.pause();
  const ended: number[] = [];
  socket.on('end', () => ended.push(all().length));
  socket.push(text);
  socket.push(null);
  await settle();
  expect(ended).toEqual([]);
  parse = () => {};
  socket.resume();
  await settle();
  expect(ended).toEqual([text.length]);
});

test('once it is stopped nothing is parsed, what follows is charged, and not received in debt', async () => {
  parse = () => {
    pieces.stop();
    pieces.endParsing();
  };
  socket.push(text);
  expect(socket.push(text)).toBe(true);
  await settle();
  expect(parsed).toHaveLength(1);
  expect(bytes.received.total).toBe(0);
  expect(bytes.charge(owner, limits.addressBytesBurst - text.length - 1)).toBe(0);
  expect(socket.push(text)).toBe(false);
});

test('when it is released the rest is returned, and what follows is passed on as it is', async () => {
  let rest: Buffer = Buffer.alloc(0);
  parse = () => {
    rest = pieces.release();
  };
  socket.push(text);
  const later: Buffer[] = [];
  socket.on('data', (chunk) => later.push(chunk));
  socket.push(text);
  await settle();
  expect(Buffer.concat([...parsed, rest])).toEqual(text);
  expect(Buffer.concat(later)).toEqual(text);
  expect(bytes.received.total).toBe(0);
});

test('an error of a listener is not swallowed', () => {
  parse = () => {
    throw new Error('broken');
  };
  expect(() => socket.push(Buffer.from('x'))).toThrow('broken');
});

test('while Node holds a connection back for an answer nothing is parsed, even if it is resumed', async () => {
  const held = socket as Duplex & { _paused?: boolean };
  parse = () => {
    held._paused = true;
    socket.pause();
  };
  socket.push(text);
  await settle();
  socket.resume();
  await settle();
  expect(parsed).toHaveLength(1);
  expect(socket.isPaused()).toBe(true);
  parse = () => {};
  held._paused = false;
  socket.resume();
  await settle();
  expect(all()).toEqual(text);
});

const request = {} as IncomingMessage;
const client = { kind: 'address', id: '198.51.100.1' } as const;
const account = { kind: 'account', id: 'a' } as const;
const other = { kind: 'address', id: '198.51.100.2' } as const;

test.each([
  ['the connection', [], owner, client],
  ['the client that its headers name', [() => pieces.begin(request, client)], client, owner],
  [
    'the account whose body it is',
    [() => pieces.begin(request, client), () => pieces.moveTo(account)],
    account,
    client,
  ],
  [
    'the client of the next request',
    [() => pieces.moveTo(account), () => pieces.begin(request, other)],
    other,
    account,
  ],
] as const)('what waits is held for %s', async (_, steps, holder, neighbour) => {
  parse = () => socket.pause();
  socket.push(text);
  await settle();
  for (const step of steps) step();
  // It ends when there is no room for what others of its owner hold.
  const fill = (one: ByteOwner) =>
    bytes.received.open(one, () => {}).add(100_000 - text.length + 1);
  expect(fill(neighbour)).toBe(true);
  expect(socket.destroyed).toBe(false);
  expect(fill(holder)).toBe(true);
  expect(socket.destroyed).toBe(true);
});

test('once it is stopped nothing is received any more after 30 s', () => {
  pieces.stop();
  clock.advance(29);
  expect(socket.push(Buffer.from('x'))).toBe(true);
  pieces.stop();
  clock.advance(1);
  expect(socket.push(Buffer.from('x'))).toBe(false);
});

test('02 §18: the time of headers begins when the peer has taken the answer that Node waits for', async () => {
  late.mockClear();
  const held = socket as Duplex & { _paused?: boolean };
  parse = () => {
    // Half of the next one follows.
    pieces.begin({ complete: true, headers: {} } as IncomingMessage, client);
    held._paused = true;
    socket.pause();
  };
  socket.push(Buffer.from('GET / HTTP/1.1\r\n\r\nGET'));
  await settle();
  clock.advance(100);
  parse = () => {};
  held._paused = false;
  socket.resume();
  await settle();
  clock.advance(29);
  expect(late).not.toHaveBeenCalled();
  clock.advance(1);
  expect(late).toHaveBeenCalledOnce();
});

test('a proxy pays for nothing that is dropped, and has a megabyte of it at most', async () => {
  socket = new Duplex({ read: () => {}, write: () => {} });
  pieces = new ParsedPieces({ context, bytes, owner, isProxy: true, socket, late });
  pieces.stop();
  const megabyte = Buffer.alloc(1_048_576);
  expect(socket.push(megabyte)).toBe(true);
  expect(bytes.charge(owner, 1)).toBe(0);
  expect(socket.push(Buffer.alloc(1))).toBe(false);
});

test('after a request that is whole, what waits is held for the connection again', async () => {
  parse = () => {
    pieces.begin({ complete: true, headers: {} } as IncomingMessage, client);
    socket.pause();
  };
  socket.push(text);
  await settle();
  const fill = (one: ByteOwner) =>
    bytes.received.open(one, () => {}).add(100_000 - text.length + 1);
  expect(fill(client)).toBe(true);
  expect(socket.destroyed).toBe(false);
  expect(fill(owner)).toBe(true);
  expect(socket.destroyed).toBe(true);
});

test('what was parsed is not held once more by a WebSocket on the same connection', async () => {
  for (let count = 0; count < 3; count += 1) {
    socket.pause();
    socket.push(text);
    socket.resume();
    await settle();
  }
  pieces.release();
  const waiting: number[] = [];
  using _reader = GatheredChunks.of(socket)?.readBy({ waiting: (count) => waiting.push(count) });
  expect(parsed.length).toBeGreaterThan(0);
  expect(waiting.reduce((sum, count) => sum + count, 0)).toBe(0);
});

test.each([
  ['exactly as many bytes as may follow of a body that is dropped are parsed', 8_192, false],
  ['one more ends the connection', 8_191, true],
])('02 §18: %s', async (_, most, isEnded) => {
  const request = { complete: false } as IncomingMessage;
  pieces.begin(request, owner);
  pieces.boundBody(request, most);
  socket.push(Buffer.alloc(8_192));
  await settle();
  expect(socket.destroyed).toBe(isEnded);
});

test('02 §18: the bound of a body that was dropped is not that of the next one', async () => {
  const dropped = { complete: false } as IncomingMessage;
  pieces.begin(dropped, owner);
  pieces.boundBody(dropped, 0);
  pieces.begin({ complete: false } as IncomingMessage, owner);
  // The answer to the first may be written once the second has begun.
  pieces.boundBody(dropped, 0);
  socket.push(text);
  await settle();
  expect(socket.destroyed).toBe(false);
  expect(all()).toEqual(text);
});
