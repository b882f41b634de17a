import { once } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { encodeFrame } from '@posthouse/protocol/federation';
import { describe, expect, test } from 'vitest';
import { defaultPeerLimits, type PeerProtocol } from '../src/index.ts';
import { encodeLines } from '../src/multistream.ts';
import { encodeHeader, frameFlag, frameType, windowBytes } from '../src/yamux/frame.ts';
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
import { dataFrame, openingFrame, openSocket, RawPeer } from './support/raw-peer.ts';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

/** Bytes of buffers that are in use. */
function usedMemory(): number {
  collectGarbage();
  return process.memoryUsage().arrayBuffers;
}

/** Checks what is in use once what is being sent and received is gone. */
async function fallsBelow(most: number): Promise<void> {
  for (let turn = 0; turn < 100 && usedMemory() >= most; turn += 1) await turns(1);
  expect(usedMemory()).toBeLessThan(most);
}

const target = identityOf(1).peerId;
const megabyte = 1_048_576;

test('07 §B5: while 300 connections of five addresses are silent, a relay dials and calls', async () => {
  const clock = new ManualClock();
  await using listener = hostOf(1, { limits: defaultPeerLimits, clock });
  await using dialer = hostOf(2);
  const address = await listener.listen(anyPort);
  const silent = await Promise.all(
    Array.from({ length: 300 }, (_, index) =>
      openSocket(address.port, `127.0.0.${2 + (index % 5)}`),
    ),
  );
  const connection = await dialer.dial({ ...address, peerId: target, signal: forever });
  const stream = await connection.openStream(echoProtocol, { signal: forever });
  await stream.writeFrame(Buffer.from('call'));
  stream.end();
  expect(Buffer.from((await stream.readFrame()) ?? []).toString()).toBe('call');
  // Four of each address wait for their handshake; it ends after ten seconds.
  const open = () => silent.filter((socket) => !socket.closed).length;
  await until(() => open() <= 20);
  expect(open()).toBe(20);
  clock.advance(10_000);
  await until(() => open() === 0);
});

/** Serves until it is released, and counts how many streams are served at once. */
function waitingProtocol(streams: number) {
  const released = Promise.withResolvers<void>();
  const seen = { now: 0, most: 0 };
  const protocol: PeerProtocol<string> = {
    streams,
    async serve() {
      seen.now += 1;
      seen.most = Math.max(seen.most, seen.now);
      await released.promise;
      seen.now -= 1;
    },
  };
  return { protocols: new Map([[echoProtocol, protocol]]), seen, release: released.resolve };
}

test('07 §C2: of 300 streams at once 64 are served, the others reset, the connection lives', async () => {
  const { protocols, seen, release } = waitingProtocol(64);
  await using pair = await RawPair.start({ protocols });
  const { peer, connection } = pair;
  for (let index = 0; index < 300; index += 1) {
    peer.send(openingFrame(1 + 2 * index, echoProtocol, Buffer.alloc(0)));
  }
  const resets = () => {
    let count = 0;
    for (let at = peer.received.indexOf('00010008', 0, 'hex'); at !== -1; count += 1) {
      at = peer.received.indexOf('00010008', at + 4, 'hex');
    }
    return count;
  };
  await until(() => resets() >= 236);
  expect(seen).toEqual({ now: 64, most: 64 });
  expect(connection.isOpen).toBe(true);
  expect(connection.streams).toBe(64);
  release();
});

test('07 §C2: streams that are opened and reset at once run no more handlers than the limit', async () => {
  const { protocols, seen, release } = waitingProtocol(64);
  await using pair = await RawPair.start({ protocols });
  const { peer } = pair;
  for (let index = 0; index < 1_000; index += 1) {
    const id = 1 + 2 * index;
    peer.send(
      openingFrame(id, echoProtocol, Buffer.alloc(0)),
      dataFrame(id, Buffer.alloc(0), frameFlag.rst),
    );
  }
  peer.send(Buffer.from('000200010000000000000007', 'hex'));
  await until(() => peer.received.includes(Buffer.from('000200020000000000000007', 'hex')));
  expect(seen.most).toBe(64);
  release();
});

test('07 §C2: 60 answers of 1 MiB that no peer reads hold at most 2 MiB, then the connection closes', async () => {
  const clock = new ManualClock();
  let answers = 0;
  const protocol: PeerProtocol<string> = {
    streams: 64,
    async serve(stream) {
      await stream.readFrame();
      answers += 1;
      await stream.writeFrame(Buffer.alloc(megabyte));
    },
  };
  const protocols = new Map([[echoProtocol, protocol]]);
  await using pair = await RawPair.start({ protocols, clock });
  const { peer, connection } = pair;
  peer.channel.pause();
  for (let index = 0; index < 60; index += 1) {
    peer.send(openingFrame(1 + 2 * index, echoProtocol, encodeFrame(Buffer.from('ask'))));
  }
  await until(() => answers > 0 && connection.heldBytes > megabyte);
  // Nothing more happens without the peer; many turns show it.
  await turns(500);
  expect(connection.heldBytes).toBeLessThanOrEqual(2 * megabyte);
  const closed = connection.closed;
  clock.advance(testLimits.heldTime);
  await expect(closed).resolves.toMatchObject({ code: 'limit' });
});

test('07 §C2: requests that are not read hold at most half of heldBytes; those above are reset', async () => {
  const { protocols, seen, release } = waitingProtocol(64);
  await using pair = await RawPair.start({ protocols });
  const { peer, connection } = pair;
  for (let index = 0; index < 60; index += 1) {
    const id = 1 + 2 * index;
    peer.send(
      openingFrame(id, echoProtocol, Buffer.alloc(0)),
      dataFrame(id, Buffer.alloc(250_000)),
    );
  }
  await until(() => connection.heldBytes > 12 * megabyte - 250_000);
  await until(() => peer.received.includes(Buffer.from('0001000800000077', 'hex')));
  expect(connection.heldBytes).toBeLessThanOrEqual(testLimits.heldBytes / 2);
  expect(connection.streams).toBeGreaterThanOrEqual(testLimits.largeRequests);
  release();
  await until(() => connection.heldBytes === 0 && seen.now === 0);
  expect(connection.isOpen).toBe(true);
});

test('07 §C2: 16 requests of 1 MiB at once are all answered, and hold at most 8 MiB', async () => {
  await using pair = await HostPair.start();
  const { connection, other } = pair;
  let most = 0;
  const call = async () => {
    const stream = await connection.openStream(echoProtocol, { signal: forever });
    await stream.writeFrame(Buffer.alloc(megabyte, 7));
    stream.end();
    const answer = await stream.readFrame();
    most = Math.max(most, other.heldBytes, connection.heldBytes);
    expect(answer).toHaveLength(megabyte);
  };
  await Promise.all(Array.from({ length: 16 }, call));
  expect(most).toBeGreaterThan(megabyte);
  expect(most).toBeLessThanOrEqual(8 * megabyte);
});

test.each([
  ['a length of 2^40', '808080808020'],
  ['the length 81 00', '8100'],
  ['a length of ten bytes', '80808080808080808001'],
  ['a length above 1 MiB', '818040'],
])('07 §B6: %s resets the stream at once, the connection lives', async (_, prefix) => {
  await using pair = await RawPair.start();
  const { peer, connection } = pair;
  peer.send(openingFrame(1, echoProtocol, Buffer.from(prefix, 'hex')));
  await until(() => peer.received.includes(Buffer.from('000100080000000100000000', 'hex')));
  expect(connection.isOpen).toBe(true);
  expect(connection.heldBytes).toBe(0);
});

test('07 §B2: 640 KiB past the window close the connection', async () => {
  const { protocols, release } = waitingProtocol(64);
  await using pair = await RawPair.start({ protocols });
  const { peer, connection } = pair;
  peer.send(openingFrame(1, echoProtocol, Buffer.alloc(0)));
  for (let sent = 0; sent < windowBytes + 655_360; sent += 65_536) {
    peer.send(dataFrame(1, Buffer.alloc(65_536)));
  }
  await expect(connection.closed).resolves.toMatchObject({ code: 'protocol' });
  await peer.closed;
  release();
});

test('07 §B2: small pieces hold little more memory than their bytes', async () => {
  const { protocols, release } = waitingProtocol(64);
  await using pair = await RawPair.start({ protocols });
  const { peer, connection } = pair;
  peer.send(openingFrame(1, echoProtocol, Buffer.alloc(0)));
  // Each byte comes in a message of 60,000 bytes; the rest belongs to a stream that does not exist.
  const filler = dataFrame(99, Buffer.alloc(59_900));
  const before = usedMemory();
  for (let index = 0; index < 1_000; index += 1) peer.send(dataFrame(1, Buffer.of(1)), filler);
  await until(() => connection.heldBytes >= 1_000);
  // Buffers are freed in the background; if the pieces held theirs, this would be 60 MB for good.
  await until(() => usedMemory() - before < 10 * megabyte);
  expect(connection.heldBytes).toBeLessThan(262_144);
  release();
});

test('07 §B2: streams that have sent a part of a proposal hold little memory', async () => {
  await using pair = await RawPair.start();
  const { peer, connection } = pair;
  const filler = dataFrame(999, Buffer.alloc(59_900));
  const before = usedMemory();
  for (let index = 0; index < 96; index += 1) {
    peer.send(dataFrame(1 + 2 * index, Buffer.of(0x13), frameFlag.syn), filler);
  }
  await until(() => connection.streams === 96);
  // If each stream held the message that its byte lies in, this would be 5.7 MB. Buffers are freed
  // in the background, so it is tried some times.
  await fallsBelow(before + 2 * megabyte);
});

test('07 §C2: 64 streams that are opened first and agree on their protocol later are served', async () => {
  const { protocols, seen, release } = waitingProtocol(64);
  await using pair = await RawPair.start({ protocols });
  const { peer } = pair;
  const ids = Array.from({ length: 64 }, (_, index) => 1 + 2 * index);
  const empty = Buffer.alloc(0);
  for (const id of ids) peer.send(dataFrame(id, empty, frameFlag.syn));
  const proposal = encodeLines('/multistream/1.0.0', echoProtocol);
  for (const id of ids) peer.send(dataFrame(id, Buffer.from(proposal)));
  peer.send(Buffer.from('000200010000000000000007', 'hex'));
  await until(() => peer.received.includes(Buffer.from('000200020000000000000007', 'hex')));
  expect(seen.now).toBe(64);
  release();
});

describe('07 §B2: a peer that pings', () => {
  const pingProtocol = '/ipfs/ping/1.0.0';
  const hexId = (id: number) => id.toString(16).padStart(8, '0');
  const isReset = (received: Buffer, id: number) =>
    received.includes(Buffer.from(`00010008${hexId(id)}`, 'hex'));

  test('more often than twice a second is reset; after a pause it is answered again', async () => {
    const clock = new ManualClock();
    await using pair = await RawPair.start({ clock });
    const { peer, connection } = pair;
    // The stream itself counts as one.
    const { pingBurst } = testLimits;
    peer.send(openingFrame(1, pingProtocol, Buffer.alloc(32 * (pingBurst - 1), 5)));
    await until(() => peer.received.length >= 32 * (pingBurst - 1));
    expect(isReset(peer.received, 1)).toBe(false);
    peer.send(dataFrame(1, Buffer.alloc(32)));
    await until(() => isReset(peer.received, 1));
    clock.advance(2_000);
    peer.received = Buffer.alloc(0);
    peer.send(openingFrame(3, pingProtocol, Buffer.alloc(3 * 32, 6)));
    await until(() => peer.received.includes(Buffer.alloc(3 * 32, 6)));
    peer.send(dataFrame(3, Buffer.alloc(32)));
    await until(() => isReset(peer.received, 3));
    expect(connection.isOpen).toBe(true);
  });

  test.each([pingProtocol, '/ipfs/id/1.0.0'])(
    'with streams of %s only is reset too',
    async (of) => {
      const clock = new ManualClock();
      await using pair = await RawPair.start({ clock });
      const { peer } = pair;
      const { pingBurst } = testLimits;
      for (let index = 0; index <= pingBurst; index += 1) {
        const id = 1 + 2 * index;
        peer.send(
          openingFrame(id, of, Buffer.alloc(0)),
          dataFrame(id, Buffer.alloc(0), frameFlag.fin),
        );
        // Each stream ends before the next one begins: few may be open at once.
        const closing = Buffer.from(`00010004${hexId(id)}`, 'hex');
        await until(() => peer.received.includes(closing) || isReset(peer.received, id));
        expect(isReset(peer.received, id)).toBe(index === pingBurst);
      }
    },
  );
});

test('07 §B3: 64 KiB without an end instead of a protocol close the connection', async () => {
  await using listener = hostOf(1);
  const { port } = await listener.listen(anyPort);
  const socket = await openSocket(port);
  socket.resume();
  socket.write(Buffer.alloc(65_536, 0x7f));
  await once(socket, 'close');
  expect(listener.connections.size).toBe(0);
});

test('07 §B2: connections on which nothing is under way keep nothing of what they received last', async () => {
  await using listener = hostOf(1, { limits: { ...testLimits, connectionsPerPeer: 32 } });
  const { port } = await listener.listen(anyPort);
  const peers = await Promise.all(Array.from({ length: 32 }, () => RawPeer.connect(port, target)));
  const before = usedMemory();
  const ping = encodeHeader({ type: frameType.ping, flags: frameFlag.syn, streamId: 0, length: 7 });
  for (const peer of peers) peer.send(dataFrame(99, Buffer.alloc(50_000)), ping);
  await until(() => peers.every((peer) => peer.received.length > 0));
  await fallsBelow(before + megabyte / 2);
  for (const peer of peers) peer[Symbol.dispose]();
});
