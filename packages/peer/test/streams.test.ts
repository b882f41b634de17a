/** Streams of an admitted connection: times, ends, signals, and what happens at the end of it. */
import { describe, expect, test } from 'vitest';
import type { PeerProtocol, PeerStream } from '../src/index.ts';
import { frameFlag } from '../src/yamux/frame.ts';
import { ManualClock } from './support/clock.ts';
import {
  anyPort,
  echoProtocol,
  forever,
  hostOf,
  identityOf,
  testLimits,
  turns,
  until,
} from './support/hosts.ts';
import { HostPair, RawPair } from './support/pair.ts';
import { dataFrame, openingFrame, RawPeer } from './support/raw-peer.ts';

const target = identityOf(1).peerId;
const empty = Buffer.alloc(0);

/** A protocol whose handler a test plays. */
function protocolOf(serve: (stream: PeerStream) => Promise<void>, streams = 64) {
  const protocol: PeerProtocol<string> = { streams, serve };
  return { protocols: new Map([[echoProtocol, protocol]]) };
}

/** The frame of a reset of this stream. */
const resetOf = (id: number) =>
  Buffer.from(`00010008${id.toString(16).padStart(8, '0')}00000000`, 'hex');

test('07 §B2: a stream without a protocol is reset after ten seconds', async () => {
  const clock = new ManualClock();
  await using pair = await RawPair.start({ clock });
  const { peer, connection } = pair;
  peer.send(dataFrame(1, Buffer.from('13', 'hex'), frameFlag.syn));
  await until(() => connection.streams === 1);
  clock.advance(testLimits.negotiationTime - 1);
  expect(connection.streams).toBe(1);
  clock.advance(1);
  expect(connection.streams).toBe(0);
  await until(() => peer.received.includes(resetOf(1)));
});

test('07 §B2: streams that negotiate are limited, and invalid lines reset them', async () => {
  await using pair = await RawPair.start({ limits: { ...testLimits, negotiatingStreams: 3 } });
  const { peer, connection } = pair;
  for (let index = 0; index < 4; index += 1) {
    peer.send(dataFrame(1 + 2 * index, empty, frameFlag.syn));
  }
  await until(() => peer.received.includes(resetOf(7)));
  peer.send(dataFrame(3, Buffer.from('ffff7f', 'hex')));
  await until(() => peer.received.includes(resetOf(3)));
  expect(connection.streams).toBe(2);
});

test('07 §C2: a served stream whose peer does not end it is reset after a while', async () => {
  const clock = new ManualClock();
  await using pair = await RawPair.start({ clock, ...protocolOf(async () => {}) });
  const { peer, connection } = pair;
  peer.send(openingFrame(1, echoProtocol, empty));
  // The end of this side: an empty frame with FIN.
  await until(() => peer.received.includes(Buffer.from('000100040000000100000000', 'hex')));
  await turns(2);
  clock.advance(testLimits.lingerTime);
  expect(connection.streams).toBe(0);
  await until(() => peer.received.includes(resetOf(1)));
});

test('07 §B2: a peer that does not answer pings is disconnected', async () => {
  const clock = new ManualClock();
  await using pair = await RawPair.start({ clock });
  const { peer, connection } = pair;
  clock.advance(testLimits.pingInterval);
  await until(() => peer.received.includes(Buffer.from('000200010000000000000001', 'hex')));
  peer.send(Buffer.from('000200020000000000000001', 'hex'));
  const answered = Buffer.from('000200010000000000000002', 'hex');
  await until(() => {
    // The answer may need some turns; until it is there, a second ping would end the connection.
    if (peer.received.length > 0) peer.send(Buffer.from('000200010000000000000063', 'hex'));
    return peer.received.includes(Buffer.from('000200020000000000000063', 'hex'));
  });
  clock.advance(testLimits.pingInterval);
  await until(() => peer.received.includes(answered));
  clock.advance(testLimits.pingInterval);
  await expect(connection.closed).resolves.toMatchObject({ code: 'timeout' });
});

test('07 §C2: a stream whose bytes the peer does not take is reset', async () => {
  const clock = new ManualClock();
  const { protocols } = protocolOf((stream) => stream.write(Buffer.alloc(300_000)));
  await using pair = await RawPair.start({ clock, protocols });
  const { peer, connection } = pair;
  peer.send(openingFrame(1, echoProtocol, empty));
  await until(() => peer.received.length > 262_144);
  for (let round = 1; round <= 2; round += 1) {
    expect(connection.streams).toBe(1);
    clock.advance(testLimits.pingInterval);
    peer.send(Buffer.from(`00020002000000000000000${round}`, 'hex'));
    await turns(20);
  }
  expect(connection.streams).toBe(0);
  expect(connection.heldBytes).toBe(0);
});

/** Two connected hosts, of which the listening one serves streams so. */
async function connected(
  stack: AsyncDisposableStack,
  serve: (stream: PeerStream) => Promise<void>,
): Promise<HostPair> {
  return stack.use(await HostPair.start({ listener: protocolOf(serve) }));
}

test('07 §C2: a request of which no more comes is reset at the second ping after its last byte', async () => {
  const clock = new ManualClock();
  const { protocols } = protocolOf(async (stream) => void (await stream.readFrame()));
  await using pair = await RawPair.start({ clock, protocols });
  const { peer, connection } = pair;
  const tick = async (round: number) => {
    clock.advance(testLimits.pingInterval);
    peer.send(Buffer.from(`00020002000000000000000${round}`, 'hex'));
    await turns(20);
  };
  peer.send(openingFrame(1, echoProtocol, Buffer.of(9, 1, 2)));
  // A stream between two frames may stay.
  peer.send(openingFrame(3, echoProtocol, empty));
  await until(() => connection.streams === 2);
  await turns(5);
  await tick(1);
  peer.send(dataFrame(1, Buffer.of(3)));
  await turns(20);
  await tick(2);
  expect(connection.streams).toBe(2);
  await tick(3);
  expect(connection.streams).toBe(1);
  await until(() => peer.received.includes(resetOf(1)));
  expect(peer.received.includes(resetOf(3))).toBe(false);
});

test('07 §C2: a stream that waits for credit of this side is not reset', async () => {
  const clock = new ManualClock();
  const limits = { ...testLimits, heldTime: 10 * testLimits.pingInterval };
  const released = Promise.withResolvers<void>();
  const { protocols } = protocolOf(async (stream) => {
    await stream.readFrame();
    await released.promise;
  });
  await using pair = await HostPair.start({ listener: { clock, protocols, limits } });
  const { connection, other } = pair;
  // The frame of the first one is favoured, and takes the room for credit.
  const streams = await Promise.all(
    Array.from({ length: 6 }, () => connection.openStream(echoProtocol, { signal: forever })),
  );
  const written = streams.map((stream) => stream.writeFrame(Buffer.alloc(1_000_000)));
  await until(() => other.heldBytes > 1_400_000);
  for (let round = 1; round <= 4; round += 1) {
    await turns(100);
    clock.advance(testLimits.pingInterval);
  }
  await turns(20);
  expect(connection.streams).toBe(6);
  released.resolve();
  await Promise.allSettled(written);
});

describe('07 §C2: after the last frame that a handler expects', () => {
  const one = Buffer.of(1, 7);
  const last = protocolOf(async (stream) => {
    await stream.readFrame();
    stream.expectEnd();
    await stream.writeFrame(Buffer.of(8));
  });

  test.each([
    ['a second frame', Buffer.concat([one, one])],
    ['a part of one', Buffer.concat([one, Buffer.of(5)])],
    ['an invalid length', Buffer.concat([one, Buffer.of(0x81, 0)])],
  ])('%s with it resets the stream', async (_, bytes) => {
    await using pair = await RawPair.start(last);
    pair.peer.send(openingFrame(1, echoProtocol, bytes));
    await until(() => pair.peer.received.includes(resetOf(1)));
    expect(pair.peer.received.includes(Buffer.of(1, 8))).toBe(false);
    expect(pair.connection.streams).toBe(0);
  });

  test('a byte that comes after the answer resets the stream', async () => {
    await using pair = await RawPair.start(last);
    pair.peer.send(openingFrame(1, echoProtocol, one));
    await until(() => pair.peer.received.includes(Buffer.of(1, 8)));
    pair.peer.send(dataFrame(1, Buffer.of(1)));
    await until(() => pair.peer.received.includes(resetOf(1)));
    expect(pair.connection.streams).toBe(0);
  });

  test('its end is no fault', async () => {
    await using pair = await RawPair.start(last);
    pair.peer.send(openingFrame(1, echoProtocol, one), dataFrame(1, empty, frameFlag.fin));
    await until(() => pair.peer.received.includes(Buffer.of(1, 8)));
    await until(() => pair.connection.streams === 0);
    expect(pair.peer.received.includes(resetOf(1))).toBe(false);
  });
});

test('07 §C2: a signal that aborts resets the stream on both sides', async () => {
  await using stack = new AsyncDisposableStack();
  const aborted = Promise.withResolvers<unknown>();
  const { connection } = await connected(stack, async (stream) => {
    stream.signal.addEventListener('abort', () => aborted.resolve(stream.signal.reason));
    await stream.readFrame();
    await stream.readFrame();
  });
  const controller = new AbortController();
  const stream = await connection.openStream(echoProtocol, { signal: controller.signal });
  const reading = stream.readFrame();
  controller.abort(new Error('not needed any more'));
  await expect(reading).rejects.toThrow('not needed any more');
  await expect(stream.write(Buffer.of(1))).rejects.toThrow('not needed any more');
  expect(await aborted.promise).toMatchObject({ code: 'reset' });
  await expect(connection.openStream(echoProtocol, { signal: controller.signal })).rejects.toThrow(
    'not needed any more',
  );
  expect(connection.streams).toBe(0);
});

test('07 §C2: a handler that fails resets its stream; the host reports it', async () => {
  const failed = Promise.withResolvers<unknown>();
  const { protocols } = protocolOf(async (stream) => {
    await stream.readFrame();
    throw new Error('a fault');
  });
  await using pair = await HostPair.start({
    listener: {
      protocols,
      observer: { failed: (protocol, error) => failed.resolve([protocol, error]) },
    },
  });
  const { connection } = pair;
  const stream = await connection.openStream(echoProtocol, { signal: forever });
  await stream.writeFrame(Buffer.of(1));
  await expect(stream.readFrame()).rejects.toMatchObject({ code: 'reset' });
  expect(await failed.promise).toEqual([echoProtocol, new Error('a fault')]);
  expect(connection.isOpen).toBe(true);
});

test('07 §C2: as many streams are opened at once as are served; the next one waits', async () => {
  await using stack = new AsyncDisposableStack();
  const release = Promise.withResolvers<void>();
  const { connection, dialer } = await connected(stack, () => release.promise);
  const streams = await Promise.all(
    Array.from({ length: 64 }, () => connection.openStream(echoProtocol, { signal: forever })),
  );
  let opened = false;
  const next = connection.openStream(echoProtocol, { signal: forever }).then((stream) => {
    opened = true;
    return stream;
  });
  const given = new AbortController();
  const givenUp = connection.openStream(echoProtocol, { signal: given.signal });
  given.abort(new Error('given up'));
  await expect(givenUp).rejects.toThrow('given up');
  await turns(20);
  expect(opened).toBe(false);
  streams[0]?.reset();
  const last = await next;
  const waiting = connection.openStream(echoProtocol, { signal: forever });
  connection.close('the test is over');
  await expect(waiting).rejects.toThrow('the test is over');
  await expect(last.read()).rejects.toThrow('the test is over');
  release.resolve();
  expect(dialer.connections.size).toBe(1);
  await connection.closed;
  expect(dialer.connections.size).toBe(0);
});

test('07 §C2: of the first streams that are opened together, only those above the limit fail', async () => {
  const held = Promise.withResolvers<void>();
  const few = protocolOf(async (stream) => {
    await held.promise;
    await stream.writeFrame(Buffer.of(1));
  }, 4);
  await using pair = await HostPair.start({ listener: few });
  const { connection } = pair;
  const opening = Array.from({ length: 6 }, () =>
    connection.openStream(echoProtocol, { signal: forever }),
  );
  // Only the first one waits for the agreement of the peer.
  const streams = await Promise.all(opening);
  const ends = streams.map((stream) => {
    stream.end();
    return stream.readFrame().then(() => 'answered', String);
  });
  const reset = expect.stringContaining('reset by the peer');
  expect(await Promise.all(ends.slice(4))).toEqual([reset, reset]);
  held.resolve();
  expect(await Promise.all(ends.slice(0, 4))).toEqual(Array(4).fill('answered'));
});

test('07 §C2: a signal that aborts as a waiting stream gets its turn ends the call', async () => {
  await using stack = new AsyncDisposableStack();
  const { connection } = await connected(stack, () => new Promise(() => {}));
  const streams = await Promise.all(
    Array.from({ length: 64 }, () => connection.openStream(echoProtocol, { signal: forever })),
  );
  const controller = new AbortController();
  const waiting = connection.openStream(echoProtocol, { signal: controller.signal });
  streams[0]?.reset();
  controller.abort(new Error('given up'));
  await expect(waiting).rejects.toThrow('given up');
  expect(connection.streams).toBe(63);
  connection.close('the test is over');
});

test('07 §B4: a connection is reported before the streams that came with its agreement', async () => {
  const order: string[] = [];
  const { protocols } = protocolOf(async () => void order.push('stream'));
  await using listener = hostOf(1, {
    protocols,
    observer: { admitted: () => order.push('connection') },
  });
  const { port } = await listener.listen(anyPort);
  const first = openingFrame(1, echoProtocol, empty);
  using _peer = await RawPeer.connect(port, target, 9, first);
  await until(() => order.length === 2);
  expect(order).toEqual(['connection', 'stream']);
});

test('07 §B2: when a host stops, streams under way end first, new ones are refused', async () => {
  await using stack = new AsyncDisposableStack();
  const release = Promise.withResolvers<void>();
  const { connection, listener, other } = await connected(stack, async (stream) => {
    await release.promise;
    await stream.writeFrame(Buffer.from('the last answer'));
  });
  const stream = await connection.openStream(echoProtocol, { signal: forever });
  stream.end();
  const stopped = listener[Symbol.asyncDispose]();
  await until(() => !connection.isOpen);
  await expect(connection.openStream(echoProtocol, { signal: forever })).rejects.toMatchObject({
    code: 'closed',
  });
  release.resolve();
  expect(Buffer.from((await stream.readFrame()) ?? []).toString()).toBe('the last answer');
  await stopped;
  expect(await other.closed).toMatchObject({ code: 'closed', message: 'this relay stops' });
  await connection.closed;
});

test('07 §B2: streams that do not end are reset when the grace of a stop is over', async () => {
  const clock = new ManualClock();
  const { protocols } = protocolOf(() => new Promise(() => {}));
  const listener = hostOf(1, { clock, protocols });
  await using dialer = hostOf(2);
  const address = await listener.listen(anyPort);
  const connection = await dialer.dial({ ...address, peerId: target, signal: forever });
  const stream = await connection.openStream(echoProtocol, { signal: forever });
  const stopped = listener[Symbol.asyncDispose]();
  await until(() => !connection.isOpen);
  clock.advance(testLimits.stopGrace);
  await stopped;
  await expect(stream.read()).rejects.toThrow();
});

test('07 §C2: a stream that was ended takes no more bytes; two reads at once are a fault', async () => {
  await using stack = new AsyncDisposableStack();
  const { connection } = await connected(stack, () => new Promise(() => {}));
  const stream = await connection.openStream(echoProtocol, { signal: forever });
  const reading = stream.read();
  await expect(stream.read()).rejects.toThrow(TypeError);
  stream.end();
  await expect(stream.write(Buffer.of(1))).rejects.toThrow(TypeError);
  stream.reset();
  await expect(reading).rejects.toMatchObject({ code: 'reset' });
});

test('07 §B6: a frame cut at every byte arrives whole; a cut end is refused', async () => {
  await using stack = new AsyncDisposableStack();
  const received: string[] = [];
  const { connection } = await connected(stack, async (stream) => {
    for (let frame = await stream.readFrame(); frame !== undefined; ) {
      received.push(Buffer.from(frame).toString());
      frame = await stream.readFrame();
    }
    await stream.writeFrame(Buffer.from('read'));
  });
  const bytes = Buffer.concat([Buffer.of(5), Buffer.from('hello'), Buffer.of(0)]);
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    const stream = await connection.openStream(echoProtocol, { signal: forever });
    await stream.write(bytes.subarray(0, cut));
    await turns(1);
    await stream.write(bytes.subarray(cut));
    stream.end();
    expect(Buffer.from((await stream.readFrame()) ?? []).toString()).toBe('read');
    expect(received.splice(0)).toEqual(['hello', '']);
    const short = await connection.openStream(echoProtocol, { signal: forever });
    await short.write(bytes.subarray(0, cut));
    short.end();
    const whole = cut === 0 || cut >= 6;
    if (whole) expect(await short.readFrame()).toBeDefined();
    else await expect(short.readFrame()).rejects.toMatchObject({ code: 'reset' });
    received.length = 0;
  }
});
