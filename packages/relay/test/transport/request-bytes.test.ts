import { EventEmitter, once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { PassThrough, Readable } from 'node:stream';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { defaultLimits } from '../../src/limits.ts';
import { ByteAccounts } from '../../src/transport/byte-accounts.ts';
import { dropBody, holdAnswer, RequestBytes } from '../../src/transport/request-bytes.ts';
import { ManualClock } from '../support/clock.ts';
import { FakeSocket } from '../support/fake-socket.ts';

/** 02 §18: bodies that do not arrive, and answers over HTTP that a peer does not take. */

const clock = new ManualClock();
const context = { clock, limits: defaultLimits };
const owner = { kind: 'account', id: 'ann' } as const;
let bytes: ByteAccounts;
const turn = () => new Promise((go) => setImmediate(go));
beforeEach(() => {
  bytes = new ByteAccounts(context);
});

class FakeResponse extends EventEmitter {
  closed = false;
  readonly setHeader = vi.fn();
  readonly socket = { destroy: vi.fn() };

  close(): void {
    this.closed = true;
    this.emit('close');
  }
}

function answer(length: number): FakeResponse {
  const response = new FakeResponse();
  const real = response as unknown as ServerResponse;
  holdAnswer({ context, bytes, owner, response: real }, length);
  return response;
}

/** Begins to read a body; returns it, and the code that reading it ends with. */
function reading(
  kind: 'account' | 'address',
  { isGone = false, expects = false, answered = {} } = {},
) {
  const response = Object.assign(new FakeResponse(), answered);
  const request = Object.assign(new EventEmitter(), {
    headers: expects ? { expect: '100-continue' } : {},
    ...{ rawHeaders: [], resume: vi.fn(), pause: vi.fn(), socket: new FakeSocket() },
  });
  const body = new PassThrough();
  if (isGone) body.destroy();
  const received = new RequestBytes({
    ...{ context, bytes, owner: { kind, id: 'ann' } },
    request: request as unknown as IncomingMessage,
    response: response as unknown as ServerResponse,
  }).readBody(body);
  const code = received.then(
    () => 'ok',
    (error) => error.code,
  );
  return { body, code, request, response };
}

test('a body of a stranger has 30 seconds; one with a session may be slow', async () => {
  const [stranger, slow, stalled] = [reading('address'), reading('account'), reading('account')];
  for (const { body } of [stranger, slow]) body.write(' '.repeat(20_000));
  await turn();
  clock.advance(30);
  expect(await Promise.all([stranger.code, stalled.code])).toEqual([
    ...['temporarily_unavailable', 'temporarily_unavailable'],
  ]);
  expect(stranger.response.setHeader).toHaveBeenCalledWith('connection', 'close');
  slow.body.end(' ');
  expect(await slow.code).toBe('ok');
  clock.advance(300);
  expect(slow.response.setHeader).not.toHaveBeenCalled();
  for (const { response } of [stranger, slow, stalled]) response.close();
  expect(bytes.received.total).toBe(0);
});

test.each([
  [false, 1],
  [true, 0],
])(
  'RFC 9110 §10.1.1: an expectation is continued, unless the answer has begun (%s)',
  async (headersSent, continues) => {
    const writeContinue = vi.fn();
    const answered = { headersSent, writeContinue };
    const { code, response } = reading('account', { expects: true, answered });
    expect(writeContinue).toHaveBeenCalledTimes(continues);
    response.close();
    expect(await code).toBe('bad_request');
  },
);

test('02 §18: a body whose peer went before it is read is cut off at once', async () => {
  const { body, code, response } = reading('account', { isGone: true });
  expect(body.destroyed).toBe(true);
  expect(await code).toBe('bad_request');
  response.close();
  expect(bytes.received.total).toBe(0);
});

describe('02 §18: a large body', () => {
  /** Sends a body that waits to be copied; its turn is in the next turn of the event loop. */
  async function complete() {
    const sent = reading('address');
    sent.body.end(Buffer.alloc(100_000));
    await once(sent.body, 'end');
    return sent;
  }

  test('has the same time left after a turn that it waited for', async () => {
    const { body, code, request, response } = reading('address');
    const arrived = once(body, 'data');
    body.write(Buffer.alloc(300_000));
    await arrived;
    expect(request.pause).toHaveBeenCalledOnce();
    clock.advance(31);
    await turn();
    expect(request.resume).toHaveBeenCalledOnce();
    clock.advance(29);
    expect(response.setHeader).not.toHaveBeenCalled();
    clock.advance(1);
    expect(await code).toBe('temporarily_unavailable');
    response.close();
  });

  test('is in time if it is complete, even if it is copied later', async () => {
    const { code, response } = await complete();
    clock.advance(301);
    expect(await code).toBe('ok');
    expect(response.setHeader).not.toHaveBeenCalled();
    response.close();
  });

  test('is cut off if its connection closes before it is copied', async () => {
    const { code, response } = await complete();
    response.close();
    expect(await code).toBe('bad_request');
    expect(bytes.received.total).toBe(0);
  });

  test('is refused if other requests evict it before it is copied', async () => {
    bytes = new ByteAccounts({ clock, limits: { ...defaultLimits, receivedBytes: 150_000 } });
    const { code, response } = await complete();
    using other = bytes.received.open(owner, () => {});
    expect(other.add(60_000)).toBe(true);
    expect(await code).toBe('rate_limited');
    expect(bytes.received.total).toBe(60_000);
    response.close();
  });
});

test('one that is not taken within the time allowed ends its connection', async () => {
  const [slow, taken] = [answer(4_000), answer(4_000)];
  expect(bytes.waiting.total).toBe(8_000);
  taken.close();
  clock.advance(60);
  await turn();
  expect(slow.socket.destroy).not.toHaveBeenCalled();
  // A second more for each 4,000 bytes.
  clock.advance(1);
  await turn();
  expect(slow.socket.destroy).toHaveBeenCalledOnce();
  expect(taken.socket.destroy).not.toHaveBeenCalled();
  slow.close();
  expect(bytes.waiting.total).toBe(0);
});

test('an answer to a connection that has closed holds nothing', async () => {
  const response = new FakeResponse();
  response.close();
  const real = response as unknown as ServerResponse;
  holdAnswer({ context, bytes, owner, response: real }, 4_000);
  expect(bytes.waiting.total).toBe(0);
  clock.advance(120);
  await turn();
  expect(response.socket.destroy).not.toHaveBeenCalled();
});

test('the rest of the body of a request that has closed is not waited for', () => {
  const request = { closed: true, on: vi.fn(), once: vi.fn(), socket: { destroy: vi.fn() } };
  dropBody({ context, bytes, owner, request: request as unknown as IncomingMessage });
  clock.advance(120);
  expect(request.socket.destroy).not.toHaveBeenCalled();
});

test('above 16 MiB of one account, the connection with most ends', () => {
  const mebibyte = 1_048_576;
  const [large, ...others] = [10, 3, 3, 1].map((count) => answer(count * mebibyte));
  expect(large?.socket.destroy).toHaveBeenCalledOnce();
  for (const other of others) expect(other.socket.destroy).not.toHaveBeenCalled();
  expect(bytes.waiting.total).toBe(7 * mebibyte);
  expect(answer(17 * mebibyte).socket.destroy).toHaveBeenCalledOnce();
  expect(bytes.waiting.total).toBe(7 * mebibyte);
});

test('the rest of the body of a refused request is read up to a limit; then the connection ends', () => {
  const limits = { ...defaultLimits, droppedBodyBytes: 1_000 };
  const request = Object.assign(new EventEmitter(), {
    ...{ headers: {}, pause: vi.fn(), resume: vi.fn(), socket: new FakeSocket() },
  });
  const parts = { context: { clock, limits }, bytes, owner };
  dropBody({ ...parts, request: request as unknown as IncomingMessage });
  request.emit('data', Buffer.alloc(999));
  request.emit('data', Buffer.alloc(1));
  expect(request.socket.destroy).not.toHaveBeenCalled();
  request.emit('data', Buffer.alloc(1));
  expect(request.socket.destroy).toHaveBeenCalled();
  request.emit('close');
});

test('0019: of large bodies that arrive together, a turn of the event loop reads 256 KiB', async () => {
  const chunk = Buffer.alloc(65_536);
  const bodies = Array.from({ length: 8 }, () => {
    const body = new Readable({ read() {} });
    for (let count = 0; count < 10; count += 1) body.push(chunk);
    body.push(null);
    return Object.assign(body, { headers: {}, rawHeaders: [], socket: new FakeSocket() });
  });
  const unread = () => bodies.reduce((sum, { readableLength }) => sum + readableLength, 0);
  const received = bodies.map((body) =>
    new RequestBytes({
      ...{ context, bytes, owner },
      request: body as unknown as IncomingMessage,
      response: new FakeResponse() as unknown as ServerResponse,
    }).readBody(body),
  );
  let before = unread();
  while (before > 0) {
    await turn();
    // 256 KiB, the first chunk of each, which is read at once, and one more until it is held back.
    expect(before - unread()).toBeLessThanOrEqual((4 + 8 + 8) * chunk.length);
    before = unread();
  }
  for (const body of await Promise.all(received)) expect(body).toHaveLength(10 * chunk.length);
});

test('02 §18: after a debt, at most four bodies of one owner go on in a turn, until it owes again', async () => {
  const burst = defaultLimits.accountBytesBurst;
  const sent = Array.from({ length: 50 }, () => reading('account'));
  bytes.charge(owner, 2 * burst);
  const order: number[] = [];
  for (const [index, { body, request }] of sent.entries()) {
    request.resume.mockImplementation(() => {
      order.push(index);
      bytes.charge(owner, burst);
    });
    body.write('x');
  }
  await turn();
  for (const { request } of sent) expect(request.pause).toHaveBeenCalledOnce();
  const seconds = 1 + burst / defaultLimits.accountBytes;
  for (let debt = 0; debt < 2; debt += 1) {
    clock.advance(seconds);
    for (let count = 0; count < 60; count += 1) await turn();
  }
  // In the order in which they came.
  expect(order).toEqual(Array.from({ length: 8 }, (_, index) => index));
  for (const { response } of sent) response.close();
});

test('02 §18: a body whose request ended waits for no debt', async () => {
  const { body, request, response } = reading('account');
  bytes.charge(owner, 2 * defaultLimits.accountBytesBurst);
  body.write('x');
  await turn();
  expect(request.pause).toHaveBeenCalledOnce();
  request.emit('close');
  expect(request.listenerCount('close')).toBe(0);
  clock.advance(60);
  for (let count = 0; count < 5; count += 1) await turn();
  expect(request.resume).not.toHaveBeenCalled();
  response.close();
});

test('02 §18: the rest of a refused body is dropped and charged, also if it was paused', async () => {
  const bob = { kind: 'account', id: 'bob' } as const;
  const request = Object.assign(new PassThrough(), { headers: {}, socket: new FakeSocket() });
  request.pause();
  dropBody({ context, bytes, owner: bob, request: request as unknown as IncomingMessage });
  request.write(Buffer.alloc(defaultLimits.accountBytesBurst / 4));
  for (let count = 0; count < 5; count += 1) await turn();
  expect(request.readableLength).toBe(0);
  expect(bytes.charge(bob, (3 * defaultLimits.accountBytesBurst) / 4 - 1)).toBe(0);
  expect(bytes.charge(bob, 1)).toBeGreaterThan(0);
  request.destroy();
});

test('02 §18: a refused body that has arrived and is paused is read to its end; one that is not paused is left', async () => {
  for (const isPaused of [true, false]) {
    const request = Object.assign(new PassThrough(), {
      ...{ headers: {}, complete: true, socket: new FakeSocket() },
    });
    if (isPaused) request.pause();
    request.end('x');
    dropBody({ context, bytes, owner, request: request as unknown as IncomingMessage });
    for (let count = 0; count < 5; count += 1) await turn();
    expect(request.readableEnded).toBe(isPaused);
    expect(request.socket.listenerCount('close')).toBe(0);
  }
});
