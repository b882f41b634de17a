/** What is held for one peer stays bounded, and no honest use of streams comes to a standstill. */
import { expect, test } from 'vitest';
import type { PeerConnection, PeerProtocol } from '../src/index.ts';
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

test('07 §B6: one stream carries 5,000 requests, and holds the bytes of none that was answered', async () => {
  await using listener = hostOf(1);
  await using dialer = hostOf(2);
  const address = await listener.listen(anyPort);
  const connection = await dialer.dial({ ...address, peerId: target, signal: forever });
  const [other] = listener.connections;
  const stream = await connection.openStream(echoProtocol, { signal: forever });
  let most = 0;
  let answered = 0;
  for (let round = 0; round < 50; round += 1) {
    for (let index = 0; index < 100; index += 1) await stream.writeFrame(Buffer.alloc(400, index));
    for (let index = 0; index < 100; index += 1) {
      if ((await stream.readFrame())?.[0] === index) answered += 1;
      most = Math.max(most, connection.heldBytes, other?.heldBytes ?? 0);
    }
  }
  expect(answered).toBe(5_000);
  expect(most).toBeLessThan(megabyte);
});

test('07 §C2: 12 requests of 1 MiB without answers hold at most 8 MiB; none of them fails', async () => {
  const released = Promise.withResolvers<void>();
  const protocol: PeerProtocol<string> = {
    streams: 64,
    async serve(stream) {
      await stream.readFrame();
      await released.promise;
      await stream.writeFrame(Buffer.of(1));
    },
  };
  await using listener = hostOf(1, { protocols: new Map([[echoProtocol, protocol]]) });
  // The peer sends as fast as it is given credit.
  await using dialer = hostOf(2, { limits: { ...testLimits, heldBytes: 2 ** 30 } });
  const address = await listener.listen(anyPort);
  const connection = await dialer.dial({ ...address, peerId: target, signal: forever });
  const [other] = listener.connections;
  const calls = Array.from({ length: 12 }, async () => {
    const stream = await connection.openStream(echoProtocol, { signal: forever });
    await stream.writeFrame(Buffer.alloc(megabyte));
    stream.end();
    return stream.readFrame();
  });
  await until(() => (other?.heldBytes ?? 0) > 3 * megabyte);
  // Nothing more happens without the handlers; many turns show it.
  await turns(500);
  expect(other?.heldBytes).toBeLessThanOrEqual(8 * megabyte);
  released.resolve();
  for (const answer of await Promise.all(calls)) expect(answer).toHaveLength(1);
  await until(() => other?.heldBytes === 0);
});

test('07 §C2: 16 requests of 1 MiB in both directions at once are all answered', async () => {
  await using listener = hostOf(1);
  await using dialer = hostOf(2);
  const address = await listener.listen(anyPort);
  const connection = await dialer.dial({ ...address, peerId: target, signal: forever });
  const both = [connection, ...listener.connections];
  const calls = both.flatMap((one) => Array.from({ length: 16 }, () => call(one, megabyte)));
  await Promise.all(calls);
});

test('07 §C2: after a crowd of large requests nothing is held, and new ones are answered', async () => {
  await using listener = hostOf(1);
  await using dialer = hostOf(2);
  const address = await listener.listen(anyPort);
  const connection = await dialer.dial({ ...address, peerId: target, signal: forever });
  const [other] = listener.connections;
  await Promise.allSettled(Array.from({ length: 24 }, () => call(connection, megabyte)));
  await until(() => other?.heldBytes === 0 && connection.heldBytes === 0);
  const results = await Promise.allSettled(
    Array.from({ length: 16 }, () => call(connection, megabyte)),
  );
  expect(results.filter((one) => one.status === 'rejected')).toEqual([]);
});

test('07 §C2: a write that waits when its stream is ended holds nothing', async () => {
  const protocols = new Map([
    [echoProtocol, { streams: 64, serve: () => new Promise<void>(() => {}) }],
  ]);
  await using listener = hostOf(1, { protocols, limits: { ...testLimits, stopGrace: 0 } });
  await using dialer = hostOf(2);
  const address = await listener.listen(anyPort);
  const connection = await dialer.dial({ ...address, peerId: target, signal: forever });
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
  await using listener = hostOf(1, { protocols: new Map([[echoProtocol, protocol]]) });
  const { port } = await listener.listen(anyPort);
  using peer = await RawPeer.connect(port, target);
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
