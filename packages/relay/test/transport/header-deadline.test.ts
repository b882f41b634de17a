/** 02 §18, 0019: how long the headers of a request may be unfinished. */
import { connect } from 'node:tls';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { defaultLimits } from '../../src/limits.ts';
import { ByteAccounts } from '../../src/transport/byte-accounts.ts';
import { HeaderDeadline } from '../../src/transport/header-deadline.ts';
import { UnfinishedHeaders } from '../../src/transport/unfinished-headers.ts';
import { ManualClock } from '../support/clock.ts';
import { fullTurns, holdSteps, turn } from '../support/full-turns.ts';
import { servedRelay } from '../support/served-relay.ts';

describe('the time of headers', () => {
  const clock = new ManualClock();
  const context = { clock, limits: defaultLimits };
  const owner = { kind: 'address', id: '192.0.2.1' } as const;
  const expired = vi.fn();
  let deadline: HeaderDeadline;
  beforeEach(() => {
    expired.mockClear();
    deadline = new HeaderDeadline({ context, bytes: new ByteAccounts(context), owner, expired });
  });

  test('is 30 s from its first start, and ends once', () => {
    deadline.start();
    clock.advance(15);
    deadline.start();
    clock.advance(14);
    expect(expired).not.toHaveBeenCalled();
    clock.advance(1);
    clock.advance(60);
    deadline.start();
    clock.advance(60);
    expect(expired).toHaveBeenCalledOnce();
  });

  test('begins anew for the next headers', () => {
    deadline.start();
    clock.advance(20);
    deadline.stop();
    clock.advance(5);
    deadline.start();
    clock.advance(29);
    expect(expired).not.toHaveBeenCalled();
    clock.advance(1);
    expect(expired).toHaveBeenCalledOnce();
  });

  test('0019: needs one timer for all headers that begin in it', () => {
    const after = vi.spyOn(clock, 'after');
    using _spy = { [Symbol.dispose]: () => after.mockRestore() };
    for (let count = 0; count < 100; count += 1) {
      deadline.start();
      deadline.stop();
    }
    expect(after).toHaveBeenCalledOnce();
    clock.advance(60);
    expect(after).toHaveBeenCalledOnce();
  });

  test('does not end headers that are whole before its turn', () => {
    deadline.start();
    const { owners, release } = holdSteps(() => clock.advance(30));
    expect(owners).toEqual(['address 192.0.2.1']);
    deadline.stop();
    deadline.start();
    release();
    clock.advance(29);
    expect(expired).not.toHaveBeenCalled();
    clock.advance(1);
    expect(expired).toHaveBeenCalledOnce();
  });
});

const relay = servedRelay();

/** Counts the pieces that are parsed, and the connections whose time began. */
function watchHeaders() {
  const watch = vi.spyOn(UnfinishedHeaders.prototype, 'watch');
  const start = vi.spyOn(HeaderDeadline.prototype, 'start');
  return {
    parsed: async (count: number) => {
      while (watch.mock.calls.length < count) await turn();
    },
    opened: async (count: number) => {
      while (new Set(start.mock.contexts).size < count) await turn();
    },
    [Symbol.dispose]: () => {
      watch.mockRestore();
      start.mockRestore();
    },
  };
}

function open() {
  const { hostname, port } = new URL(relay.server.https[0] as string);
  const socket = connect({ host: hostname, port: Number(port), ca: relay.ca });
  let received = '';
  const ended = new Promise<string>((resolve) => {
    socket.on('close', () => resolve(received)).on('error', () => {});
    socket.on('data', (data) => {
      received += data;
    });
  });
  const answers = async (count: number) => {
    while ((received.match(/HTTP\/1\.1 /g) ?? []).length < count) await turn();
    return received;
  };
  return { socket, answers, ended };
}

const info = 'GET /svc/v1/relay/info HTTP/1.1\r\nHost: x\r\n';
const late =
  /^HTTP\/1\.1 503 [\s\S]*"temporarily_unavailable"[^}]*the request did not arrive in time/;

test('02 §18: headers that a line each 10 s does not finish end their connection after 30 s', async () => {
  using headers = watchHeaders();
  const { socket, ended } = open();
  socket.write(info);
  await headers.parsed(1);
  for (const piece of [2, 3]) {
    relay.clock.advance(10);
    socket.write('X-Slow: x\r\n');
    await headers.parsed(piece);
  }
  relay.clock.advance(9);
  for (let count = 0; count < 20; count += 1) await turn();
  expect(socket.readableEnded).toBe(false);
  relay.clock.advance(1);
  expect(await ended).toMatch(late);
});

test('02 §18: a new connection has 30 s for its first byte, and then 30 s for its headers', async () => {
  using headers = watchHeaders();
  const silent = open();
  const begun = open();
  await headers.opened(2);
  relay.clock.advance(29);
  begun.socket.write('G');
  await headers.parsed(1);
  relay.clock.advance(1);
  expect(await silent.ended).toMatch(late);
  relay.clock.advance(28);
  begun.socket.write(`${info.slice(1)}\r\n`);
  expect(await begun.answers(1)).toMatch(/^HTTP\/1\.1 200 /);
});

const post = 'POST /svc/v1/relay/info HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';
/** Requests in the pieces in which they are sent. */
const requests: readonly (readonly [string, readonly string[]])[] = [
  ['a request without a body', [`${info}\r\n`]],
  ['headers in two pieces, the second an LF', [`${info}\r`, '\n']],
  ['a body', [`${post}Content-Length: 2\r\n\r\n{}`]],
  ['a body that ends in a line', [`${post}Content-Length: 3\r\n\r\n{}\n`]],
  ['a body in a piece of its own', [`${post}Content-Length: 2\r\n\r\n`, '{}']],
  ['a body in two pieces', [`${post}Content-Length: 2\r\n\r\n{`, '}']],
  ['a body in chunks', [`${post}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`]],
  ['chunks in two pieces', [`${post}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n`, '\r\n']],
  ['two requests', [`${info}\r\n${info}\r\n`]],
];

/** Sends pieces; each is parsed before the next one. */
async function send({ socket }: ReturnType<typeof open>, pieces: readonly string[]) {
  using headers = watchHeaders();
  for (const [index, piece] of pieces.entries()) {
    socket.write(piece);
    await headers.parsed(index + 1);
  }
}

test.each(requests)(
  '02 §18: after %s, an idle connection has no time of headers',
  async (_, pieces) => {
    const connection = open();
    const { socket, answers } = connection;
    await send(connection, pieces);
    const count = (pieces.join('').match(/HTTP/g) ?? []).length;
    await answers(count);
    relay.clock.advance(300);
    socket.write(`${info}\r\n`);
    expect(await answers(count + 1)).toMatch(/200 OK(?![\s\S]*503)/);
    socket.destroy();
  },
);

test.each(requests)('02 §18: half of the headers that follow %s have 30 s', async (_, pieces) => {
  const connection = open();
  await send(connection, [...pieces.slice(0, -1), `${pieces.at(-1)}GET / HTT`]);
  const before = await connection.answers((pieces.join('').match(/HTTP/g) ?? []).length);
  relay.clock.advance(29);
  for (let count = 0; count < 20; count += 1) await turn();
  expect(connection.socket.readableEnded).toBe(false);
  relay.clock.advance(1);
  expect((await connection.ended).slice(before.length)).toMatch(late);
});

test('02 §18: headers that begin after an answer have 30 s', async () => {
  const connection = open();
  await send(connection, [`${info}\r\n`]);
  const before = await connection.answers(1);
  relay.clock.advance(100);
  await send(connection, ['GET']);
  relay.clock.advance(29);
  for (let count = 0; count < 20; count += 1) await turn();
  expect(connection.socket.readableEnded).toBe(false);
  relay.clock.advance(1);
  expect((await connection.ended).slice(before.length)).toMatch(late);
});

test('0019: of three connections with half of their headers one ends in each turn, and all are answered', async () => {
  using headers = watchHeaders();
  const connections = [open(), open(), open()];
  for (const { socket } of connections) socket.write(info);
  await headers.parsed(3);
  const dispose = vi.spyOn(UnfinishedHeaders.prototype, Symbol.dispose);
  using _spy = { [Symbol.dispose]: () => dispose.mockRestore() };
  // What is stopped first when the time of its headers is over.
  const ended = () => new Set(dispose.mock.contexts).size;
  using _full = fullTurns();
  relay.clock.advance(30);
  for (const count of [0, 1, 2, 3]) {
    expect(ended()).toBe(count);
    await turn();
  }
  for (const connection of connections) expect(await connection.ended).toMatch(late);
});

test('02 §18: headers that are whole while they wait for their turn to end are answered', async () => {
  using headers = watchHeaders();
  const [first, second] = [open(), open()];
  for (const { socket } of [first, second]) socket.write(info);
  await headers.parsed(2);
  const { owners, release } = holdSteps(() => relay.clock.advance(30));
  expect(owners).toEqual(['address 127.0.0.1', 'address 127.0.0.1']);
  second.socket.write('\r\n');
  expect(await second.answers(1)).toMatch(/^HTTP\/1\.1 200 /);
  release();
  expect(await first.ended).toMatch(late);
  second.socket.write(`${info}\r\n`);
  expect(await second.answers(2)).toContain('200 OK');
  second.socket.destroy();
});

test('02 §18: a WebSocket has no time of headers', async () => {
  const client = await relay.socket();
  relay.clock.advance(31);
  expect(await client.call('relay.info')).toHaveProperty('result');
});

test('02 §18: headers that are unfinished when the relay stops end after their time', async () => {
  const connection = open();
  await send(connection, [info]);
  relay.clock.advance(25);
  const stopped = relay.server[Symbol.asyncDispose]();
  await turn();
  relay.clock.advance(5);
  expect(await connection.ended).toMatch(late);
  await stopped;
});
