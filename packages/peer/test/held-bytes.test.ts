/** What is held for one peer stays bounded, and no honest use of streams comes to a standstill. */
import { expect, test } from 'vitest';
import type { PeerConnection, PeerLimits, PeerProtocol } from '../src/index.ts';
import { encodeHeader, frameFlag, frameType, windowBytes } from '../src/yamux/frame.ts';
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
const megabyte = 1_048_576;

/** Sends a frame and reads the answer of the same size, but not the end after it. */
async function call(connection: PeerConnection<string>, size: number): Promise<void> {
  const stream = await connection.openStream(echoProtocol, { signal: forever });
  await stream.writeFrame(Buffer.alloc(size, 7));
  stream.end();
  expect(await stream.readFrame()).toHaveLength(size);
}

/** Sends as much as it is given credit for, like a peer with other limits of its own. */
const unlimited: PeerLimits = {
  ...testLimits,
  heldBytes: 2 ** 31,
  heldBytesOfAll: 2 ** 31,
  // What may wait to be sent.
  frameBytes: 2 ** 27,
  largeRequests: 64,
  ownLargeRequests: 64,
};

/** Handlers that answer with one byte once they are released; counts requests that were read. */
function holdingProtocol() {
  const released = Promise.withResolvers<void>();
  const seen = { read: 0 };
  const protocol: PeerProtocol<string> = {
    streams: 64,
    async serve(stream) {
      await stream.readFrame();
      seen.read += 1;
      await released.promise;
      await stream.writeFrame(Buffer.of(1));
    },
  };
  return { protocols: new Map([[echoProtocol, protocol]]), seen, release: released.resolve };
}

/** Sends a frame and ends the stream; returns the answer. */
async function ask(connection: PeerConnection<string>, size: number) {
  const stream = await connection.openStream(echoProtocol, { signal: forever });
  await stream.writeFrame(Buffer.alloc(size, 7));
  stream.end();
  return await stream.readFrame();
}

test('07 §B6: one stream carries 5,000 requests, and holds the bytes of none that was answered', async () => {
  await using pair = await HostPair.start();
  const { connection, other } = pair;
  const stream = await connection.openStream(echoProtocol, { signal: forever });
  let most = 0;
  let answered = 0;
  for (let round = 0; round < 50; round += 1) {
    for (let index = 0; index < 100; index += 1) await stream.writeFrame(Buffer.alloc(400, index));
    for (let index = 0; index < 100; index += 1) {
      if ((await stream.readFrame())?.[0] === index) answered += 1;
      most = Math.max(most, connection.heldBytes, other.heldBytes);
    }
  }
  expect(answered).toBe(5_000);
  expect(most).toBeLessThan(megabyte);
});

test('07 §C2: 12 requests of 1 MiB without answers hold at most 8 MiB; none of them fails', async () => {
  const { protocols, release } = holdingProtocol();
  // The peer sends as fast as it is given credit.
  await using pair = await HostPair.start({
    listener: { protocols },
    dialer: { limits: unlimited },
  });
  const { connection, other } = pair;
  const calls = Array.from({ length: 12 }, () => ask(connection, megabyte));
  await until(() => other.heldBytes > 3 * megabyte);
  // Nothing more happens without the handlers; many turns show it.
  await turns(500);
  expect(other.heldBytes).toBeLessThanOrEqual(8 * megabyte);
  release();
  for (const answer of await Promise.all(calls)) expect(answer).toHaveLength(1);
  await until(() => other.heldBytes === 0);
});

test('07 §C2: 32 requests of 1 MiB and 32 small ones at once of any peer: none is reset', async () => {
  const { protocols, release } = holdingProtocol();
  await using pair = await HostPair.start({
    listener: { protocols },
    dialer: { limits: unlimited },
  });
  const { connection, other } = pair;
  const sizes = Array.from({ length: 64 }, (_, index) => (index < 32 ? megabyte : 16_000));
  const calls = sizes.map((size) => ask(connection, size));
  // All first windows, before any credit of the handlers that wait.
  await until(() => other.heldBytes > 32 * windowBytes);
  expect(other.heldBytes).toBeLessThanOrEqual(testLimits.heldBytes);
  release();
  let most = 0;
  const watched = calls.map(async (answer) => {
    expect(await answer).toHaveLength(1);
    most = Math.max(most, other.heldBytes);
  });
  await Promise.all(watched);
  expect(most).toBeLessThanOrEqual(testLimits.heldBytes);
});

test('07 §C2: all peers together hold at most heldBytesOfAll, and give all of it back', async () => {
  const { protocols, release } = holdingProtocol();
  const limits = { ...testLimits, heldBytesOfAll: testLimits.heldBytes };
  await using listener = hostOf(1, { protocols, limits });
  const address = await listener.listen(anyPort);
  const target = { ...address, peerId: identityOf(1).peerId, signal: forever };
  await using stack = new AsyncDisposableStack();
  const dialers = [2, 3, 4, 5].map((identity) =>
    stack.use(hostOf(identity, { limits: { ...unlimited, stopGrace: 0 } })),
  );
  const connections = await Promise.all(dialers.map((dialer) => dialer.dial(target)));
  const held = () => [...listener.connections].reduce((sum, one) => sum + one.heldBytes, 0);
  const calls = connections.flatMap((connection) =>
    Array.from({ length: 32 }, () => ask(connection, windowBytes)),
  );
  const ended = Promise.allSettled(calls);
  await until(() => held() > limits.heldBytesOfAll - megabyte);
  await turns(200);
  // Each peer may be given credit for one frame more.
  expect(held()).toBeLessThanOrEqual(limits.heldBytesOfAll + 4 * limits.frameBytes);
  release();
  const refused = (await ended).filter(({ status }) => status === 'rejected');
  expect(refused.length).toBeGreaterThan(0);
  await until(() => held() === 0);
  const again = connections.map((connection) => ask(connection, windowBytes));
  for (const answer of await Promise.all(again)) expect(answer).toHaveLength(1);
});

test('07 §C2: of 64 own requests of 200 kB, 16 are sent at once; small ones do not wait', async () => {
  const { protocols, seen, release } = holdingProtocol();
  await using pair = await HostPair.start({ listener: { protocols } });
  const { connection, other } = pair;
  const large = Array.from({ length: 40 }, () => ask(connection, 200_000));
  await until(() => seen.read === 16);
  const small = Array.from({ length: 20 }, () => ask(connection, 10_000));
  await until(() => seen.read === 36);
  // Nothing more happens without answers; many turns show it.
  await turns(200);
  expect(seen.read).toBe(36);
  expect(other.heldBytes).toBeLessThan(17 * 200_000 + 21 * 10_000);
  release();
  for (const answer of await Promise.all([...large, ...small])) expect(answer).toHaveLength(1);
});

test('07 §C2: an own large request that is given up lets the next one be sent', async () => {
  const { protocols, seen } = holdingProtocol();
  await using pair = await HostPair.start({
    listener: { protocols, limits: { ...testLimits, stopGrace: 0 } },
    dialer: { limits: { ...testLimits, ownLargeRequests: 1 } },
  });
  const { connection } = pair;
  const [first, second, third] = await Promise.all(
    Array.from({ length: 3 }, () => connection.openStream(echoProtocol, { signal: forever })),
  );
  await first?.writeFrame(Buffer.alloc(20_000));
  const given = second?.writeFrame(Buffer.alloc(20_000));
  const next = third?.writeFrame(Buffer.alloc(20_000));
  await until(() => seen.read === 1);
  second?.reset(new Error('given up'));
  await expect(given).rejects.toThrow('given up');
  first?.reset();
  await next;
  await until(() => seen.read === 2);
});

test('07 §C2: large requests on streams that stay open wait for answers only', async () => {
  await using pair = await HostPair.start({
    dialer: { limits: { ...testLimits, ownLargeRequests: 1 } },
  });
  const { connection } = pair;
  const streams = await Promise.all(
    Array.from({ length: 3 }, () => connection.openStream(echoProtocol, { signal: forever })),
  );
  const answers = streams.map(async (stream) => {
    await stream.writeFrame(Buffer.alloc(20_000));
    return await stream.readFrame();
  });
  for (const answer of await Promise.all(answers)) expect(answer).toHaveLength(20_000);
  expect(connection.streams).toBe(3);
});

test.each([
  ['heldBytes that its large requests exceed', { heldBytes: 8 * megabyte }, 'heldBytes'],
  ['less for all peers than for one', { heldBytesOfAll: 8 * megabyte }, 'heldBytesOfAll: at least'],
  [
    'more own large requests than others accept',
    { ownLargeRequests: 33 },
    'ownLargeRequests: at most',
  ],
])('07 §C2: a host with %s is refused', (_, limits, message) => {
  expect(() => hostOf(1, { limits: { ...testLimits, ...limits } })).toThrow(message);
  expect(() => hostOf(1)).not.toThrow();
});

test('07 §C2: 16 requests of 1 MiB in both directions at once are all answered', async () => {
  await using pair = await HostPair.start();
  const { listener, connection } = pair;
  const both = [connection, ...listener.connections];
  const calls = both.flatMap((one) => Array.from({ length: 16 }, () => call(one, megabyte)));
  await Promise.all(calls);
});

test('07 §C2: after a crowd of large requests nothing is held, and new ones are answered', async () => {
  await using pair = await HostPair.start();
  const { connection, other } = pair;
  await Promise.allSettled(Array.from({ length: 24 }, () => call(connection, megabyte)));
  await until(() => other.heldBytes === 0 && connection.heldBytes === 0);
  const results = await Promise.allSettled(
    Array.from({ length: 16 }, () => call(connection, megabyte)),
  );
  expect(results.filter((one) => one.status === 'rejected')).toEqual([]);
});

test('07 §C2: a write that waits when its stream is ended holds nothing', async () => {
  const protocols = new Map([
    [echoProtocol, { streams: 64, serve: () => new Promise<void>(() => {}) }],
  ]);
  await using pair = await HostPair.start({
    listener: { protocols, limits: { ...testLimits, stopGrace: 0 } },
  });
  const { connection } = pair;
  const [first, second] = [
    await connection.openStream(echoProtocol, { signal: forever }),
    await connection.openStream(echoProtocol, { signal: forever }),
  ];
  await first.write(Buffer.alloc(megabyte));
  const waiting = second.write(Buffer.alloc(megabyte));
  second.end();
  first.reset();
  await expect(waiting).rejects.toThrow(TypeError);
  second.reset();
  await until(() => connection.heldBytes === 0);
  expect(connection.streams).toBe(0);
});

test('07 §B2: bytes that follow a proposal are given back as credit once', async () => {
  const read = Promise.withResolvers<void>();
  const sizes = [60_000, 65_000, 65_000];
  const total = sizes.reduce((sum, size) => sum + size);
  const protocol: PeerProtocol<string> = {
    streams: 64,
    async serve(stream) {
      let seen = 0;
      while (seen < total) seen += (await stream.read())?.length ?? total;
      read.resolve();
      await stream.read();
    },
  };
  await using pair = await RawPair.start({ protocols: new Map([[echoProtocol, protocol]]) });
  const { peer } = pair;
  const [head = 0, ...others] = sizes;
  peer.send(openingFrame(1, echoProtocol, Buffer.alloc(head)));
  for (const size of others) peer.send(dataFrame(1, Buffer.alloc(size)));
  await read.promise;
  peer.send(Buffer.from('000200010000000000000007', 'hex'));
  await until(() => peer.received.includes(Buffer.from('000200020000000000000007', 'hex')));
  let credit = 0;
  for (const flags of ['00', '02']) {
    const head = Buffer.from(`000100${flags}00000001`, 'hex');
    for (let at = peer.received.indexOf(head); at !== -1; at = peer.received.indexOf(head, at + 1))
      credit += peer.received.readUInt32BE(at + 8);
  }
  expect(credit).toBeGreaterThanOrEqual(windowBytes / 2);
  expect(credit).toBeLessThanOrEqual(total + 64);
});

/** Numbers that look random and are the same in each run. */
function* numbers(seed: number): Generator<number, never> {
  for (let state = seed; ; ) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    yield state >>> 8;
  }
}

test('07 §B2: after any frames of an admitted peer, nothing is held and nothing is served', async () => {
  await using listener = hostOf(1, { limits: { ...testLimits, controlFrames: 100_000 } });
  const { port } = await listener.listen(anyPort);
  await using other = hostOf(9);
  const peerId = target;
  const watch = await other.dial({ host: '127.0.0.1', port, peerId, signal: forever });
  const [seen] = listener.connections;
  const random = numbers(4_711);
  const pick = <T>(values: readonly T[]) => values[random.next().value % values.length] as T;
  for (let round = 0; round < 30; round += 1) {
    using peer = await RawPeer.connect(port, target);
    for (let count = 0; count < 200; count += 1) {
      const streamId = 1 + 2 * (random.next().value % 12);
      const flags = pick([0, 0, 0, 0, 1, 2, frameFlag.fin, frameFlag.rst, 5, 9, 12]);
      const size = pick([0, 1, 7, 300, 20_000]);
      const payload = Buffer.alloc(size, pick([1, 5, 0x13, 0x80]));
      peer.send(
        pick([
          () => openingFrame(streamId, echoProtocol, payload),
          () => openingFrame(streamId, echoProtocol, Buffer.of(1, 7)),
          () => openingFrame(streamId, '/ipfs/ping/1.0.0', payload),
          () => dataFrame(streamId, payload, flags),
          () => dataFrame(streamId, Buffer.of(3, 1, 2, 3)),
          () => encodeHeader({ type: frameType.windowUpdate, flags, streamId, length: size }),
          () => encodeHeader({ type: frameType.ping, flags, streamId: 0, length: size }),
        ])(),
      );
      if (count % 40 === 0) await turns(1);
    }
    await turns(5);
  }
  await until(() => listener.connections.size === 1);
  await until(() => seen?.heldBytes === 0);
  expect(seen?.streams).toBe(0);
  await call(watch, 300_000);
  await until(() => seen?.heldBytes === 0);
});
