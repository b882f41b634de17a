/** 02 §18: how bodies are charged, and held back with all that their owner sends. */
import { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { beforeEach, expect, test, vi } from 'vitest';
import { defaultLimits } from '../../src/limits.ts';
import { BodyPace } from '../../src/transport/body-pace.ts';
import { ByteAccounts } from '../../src/transport/byte-accounts.ts';
import { GatheredChunks } from '../../src/transport/gathered-chunks.ts';
import { ManualClock } from '../support/clock.ts';
import { FakeSocket } from '../support/fake-socket.ts';

const owner = { kind: 'address', id: '192.0.2.1' } as const;
const limits = { ...defaultLimits, addressBytes: 1_000, addressBytesBurst: 100_000 };
const clock = new ManualClock();
let bytes: ByteAccounts;
beforeEach(() => {
  bytes = new ByteAccounts({ clock, limits });
});
const turn = () => new Promise<void>((go) => setImmediate(go));

function begin(headers: Record<string, string> = {}) {
  const fakes = { headers, pause: vi.fn(), resume: vi.fn(), socket: new FakeSocket() };
  const request = Object.assign(new EventEmitter(), fakes);
  const pace = new BodyPace({
    ...{ context: { limits }, bytes, owner, refused: () => {} },
    request: request as unknown as IncomingMessage,
  });
  return { request, pace };
}

test('the first chunk costs its bytes, every other one 32 at least', () => {
  const { pace } = begin();
  for (let count = 0; count < 1_001; count += 1) pace.receive(Buffer.alloc(1));
  pace.receive(Buffer.alloc(33));
  expect(pace.received).toBe(1_034);
  const left = 100_000 - 1 - 1_000 * 32 - 33;
  expect(bytes.charge(owner, left - 1)).toBe(0);
  expect(bytes.charge(owner, 1)).toBeGreaterThan(0);
});

test('when one body puts its owner into debt, the others are held back with it, until the owner owes nothing', async () => {
  const [one, other, complete, ended] = [
    begin(),
    begin(),
    begin({ 'content-length': '5' }),
    begin(),
  ];
  complete.pace.receive(Buffer.alloc(5));
  ended.request.emit('close');
  await turn();
  one.pace.receive(Buffer.alloc(110_000));
  for (const { request } of [one, other]) {
    expect(request.pause).toHaveBeenCalledOnce();
    expect(request.socket.pause).toHaveBeenCalledOnce();
  }
  for (const { request } of [complete, ended]) expect(request.pause).not.toHaveBeenCalled();
  clock.advance(9);
  await turn();
  expect(other.request.resume).not.toHaveBeenCalled();
  clock.advance(2);
  await turn();
  await turn();
  for (const { request } of [one, other]) {
    expect(request.resume).toHaveBeenCalledOnce();
    expect(request.socket.resume).toHaveBeenCalledOnce();
  }
  await turn();
  one.pace.receive(Buffer.alloc(110_000));
  expect(other.request.pause).toHaveBeenCalledTimes(2);
});

test('a body that ended meanwhile goes on no more', async () => {
  const { request, pace } = begin();
  await turn();
  bytes.charge(owner, 110_000);
  expect(request.pause).toHaveBeenCalledOnce();
  pace[Symbol.dispose]();
  clock.advance(60);
  await turn();
  await turn();
  expect(request.resume).not.toHaveBeenCalled();
  bytes.charge(owner, 300_000);
  expect(request.pause).toHaveBeenCalledOnce();
});

test('a body that waits for its turn and ended meanwhile goes on no more', async () => {
  bytes = new ByteAccounts({ clock, limits: defaultLimits });
  const { request, pace } = begin();
  pace.receive(Buffer.alloc(300_000));
  expect(request.pause).toHaveBeenCalledOnce();
  pace[Symbol.dispose]();
  await turn();
  await turn();
  expect(request.resume).not.toHaveBeenCalled();
});

test('a body whose connection ends, and whose request does not, is forgotten', async () => {
  const { request } = begin();
  await turn();
  request.socket.emit('close');
  for (const each of [request, request.socket]) expect(each.listenerCount('close')).toBe(0);
  bytes.charge(owner, 300_000);
  expect(request.pause).not.toHaveBeenCalled();
});

/** A body whose chunks are gathered. */
function gathered(refused = () => {}) {
  const request = Object.assign(new Readable({ read: () => {} }), {
    ...{ headers: {}, socket: new FakeSocket() },
  });
  new GatheredChunks(request);
  const pace = new BodyPace({
    ...{ context: { limits }, bytes, owner, refused },
    request: request as unknown as IncomingMessage,
  });
  return { request, pace };
}

test('each of many chunks in one piece is charged, those that are not read when the body ends too', async () => {
  const { request, pace } = gathered();
  request.on('data', (piece) => pace.receive(piece));
  await turn();
  for (let count = 0; count < 1_001; count += 1) request.push(Buffer.alloc(1));
  await turn();
  expect(pace.received).toBe(1_001);
  request.pause();
  for (let count = 0; count < 100; count += 1) request.push(Buffer.alloc(1));
  request.socket.emit('close');
  const left = 100_000 - 1 - 1_100 * 32;
  expect(bytes.charge(owner, left - 1)).toBe(0);
  expect(bytes.charge(owner, 1)).toBeGreaterThan(0);
});

test('chunks that put the owner into debt hold its bodies back while they arrive', async () => {
  const [one, other] = [gathered(), begin()];
  one.request.on('data', (piece) => one.pace.receive(piece));
  await turn();
  for (let count = 0; count < 3_000; count += 1) one.request.push(Buffer.alloc(1));
  expect(other.request.socket.pause).not.toHaveBeenCalled();
  for (let count = 0; count < 400; count += 1) one.request.push(Buffer.alloc(1));
  expect(one.request.socket.pause).toHaveBeenCalledOnce();
  expect(other.request.socket.pause).toHaveBeenCalledOnce();
});

test('what arrives while it is held back counts as received; if that is too much, it is refused', async () => {
  const refused = vi.fn();
  const { request, pace } = gathered(refused);
  await turn();
  request.push(Buffer.alloc(5_000));
  expect(bytes.received.total).toBe(5_000);
  request.push(Buffer.alloc(limits.receivedBytesPerAddress - 5_000));
  expect(refused).not.toHaveBeenCalled();
  request.push(Buffer.alloc(1));
  expect(refused).toHaveBeenCalledOnce();
  expect(bytes.received.total).toBe(0);
  pace[Symbol.dispose]();
});

test('the end of a body of an owner that owes pauses nothing once more', async () => {
  const [one, other] = [gathered(), begin()];
  await turn();
  bytes.charge(owner, 110_000);
  clock.advance(11);
  for (let count = 0; count < 3; count += 1) await turn();
  // It owes again, which the others have not noticed.
  const { receivers } = bytes;
  const pauseAll = vi.spyOn(receivers, 'pauseAll');
  bytes.charge(owner, 110_000);
  expect(pauseAll).toHaveBeenCalledOnce();
  one.request.socket.emit('close');
  expect(pauseAll).toHaveBeenCalledOnce();
  other.pace[Symbol.dispose]();
});
