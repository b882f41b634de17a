/** What a peer sends is divided over turns of the event loop, whatever it is. */
import { expect, test, vi } from 'vitest';
import { defaultPeerLimits, PeerError, type PeerProtocol } from '../src/index.ts';
import { NoiseHandshake } from '../src/noise/handshake.ts';
import { encodeHeader, frameFlag, frameType } from '../src/yamux/frame.ts';
import { HeldTurns } from './support/held-turns.ts';
import {
  anyPort,
  echoProtocol,
  forever,
  hostOf,
  identityOf,
  turns,
  until,
} from './support/hosts.ts';
import { RawPair } from './support/pair.ts';
import { dataFrame, openingFrame, openSocket } from './support/raw-peer.ts';

const peerOfTest = Buffer.from(identityOf(9).peerId).toString('hex');
const pong = Buffer.from('000200020000000000000007', 'hex');
const ping = Buffer.from('000200010000000000000007', 'hex');

/** Takes steps until nothing waits, and lets what was received meanwhile arrive; counts them. */
async function countSteps(held: HeldTurns, isDone: () => boolean): Promise<number> {
  let steps = 0;
  while (!isDone()) {
    if (held.take()) steps += 1;
    else await turns(1);
  }
  return steps;
}

/** Starts a pair of which a step of the peer waits for its turn. */
async function pairWithWaitingStep() {
  const held = new HeldTurns();
  const pair = await RawPair.start({ turns: held });
  held.hold();
  pair.peer.send(dataFrame(99, Buffer.alloc(100)));
  await until(() => held.owners.length > 0);
  return { held, pair };
}

const update = (streamId: number, flags = 0) =>
  encodeHeader({ type: frameType.windowUpdate, flags, streamId, length: 0 });

test.each([
  ['frames of streams that do not exist', () => update(99)],
  ['frames without data', () => dataFrame(99, Buffer.alloc(0))],
  [
    'streams that begin with their reset',
    (at: number) => update(2 * at + 1, frameFlag.syn | frameFlag.rst),
  ],
])('07 §B2: of 5,000 %s in one message, 64 are handled in a step of the peer', async (_, frame) => {
  const held = new HeldTurns();
  await using pair = await RawPair.start({ turns: held });
  const { peer } = pair;
  held.hold();
  peer.send(...Array.from({ length: 4_999 }, (_, at) => frame(at)), ping);
  await until(() => held.owners.length > 0);
  expect(held.owners).toEqual([peerOfTest]);
  const steps = await countSteps(held, () => peer.received.includes(pong));
  expect(steps).toBeGreaterThanOrEqual(5_000 / 64);
});

test('07 §B2: of messages of one byte, about a kilobyte is decrypted in a step of the peer', async () => {
  const held = new HeldTurns();
  await using pair = await RawPair.start({ turns: held });
  const { peer } = pair;
  held.hold();
  for (let count = 0; count < 250; count += 1) {
    for (const byte of update(99)) peer.channel.write(Buffer.of(byte));
  }
  peer.send(ping);
  const steps = await countSteps(held, () => peer.received.includes(pong));
  expect(steps).toBeGreaterThanOrEqual((3_000 * 19) / (1_024 + 19));
});

test('07 §B2: while steps of a peer wait, nothing more of it is received, and then all in order', async () => {
  const { held, pair } = await pairWithWaitingStep();
  await using _pair = pair;
  const { peer, connection } = pair;
  // More than the system keeps for both ends, so that writing stops.
  for (let count = 0; count < 400; count += 1) peer.send(dataFrame(99, Buffer.alloc(60_000)));
  peer.send(ping);
  await turns(200);
  expect(held.owners).toEqual([peerOfTest]);
  expect(peer.channel.isBlocked).toBe(true);
  held.release();
  await until(() => peer.received.includes(pong));
  expect(connection.isOpen).toBe(true);
});

test('07 §B2: a peer whose steps wait may go, and nothing of it is handled then', async () => {
  const { held, pair } = await pairWithWaitingStep();
  await using _pair = pair;
  const { connection } = pair;
  connection.close('the test says so');
  held.release();
  await connection.closed;
  expect(connection.streams).toBe(0);
});

test('07 §B2: what a peer sent before it ended the connection is handled, also if its steps wait', async () => {
  const frames: string[] = [];
  const protocol: PeerProtocol<string> = {
    streams: 1,
    async serve(stream) {
      frames.push(String(Buffer.from((await stream.readFrame()) ?? [])));
    },
  };
  const held = new HeldTurns();
  const protocols = new Map([[echoProtocol, protocol]]);
  await using pair = await RawPair.start({ turns: held, protocols });
  const { peer, connection } = pair;
  held.hold();
  peer.send(openingFrame(1, echoProtocol, Buffer.from('\x04last')));
  peer.channel.end(new PeerError('closed', 'the test says so'));
  await until(() => held.owners.length > 0);
  await turns(200);
  held.release();
  expect((await connection.closed).message).toBe('the peer ended the connection');
  expect(frames).toEqual(['last']);
});

test('07 §B3: the cryptography of an accepted handshake waits for a turn of its address', async () => {
  const held = new HeldTurns();
  await using listener = hostOf(1, { handshakeTurns: held, limits: defaultPeerLimits });
  await using dialer = hostOf(2);
  const address = await listener.listen(anyPort);
  held.hold();
  const { peerId } = identityOf(1);
  const dialled = dialer.dial({ ...address, peerId, signal: forever });
  await until(() => held.owners.length > 0);
  // Another connection does no work before it has sent a message.
  const silent = await openSocket(address.port);
  await turns(20);
  expect(held.owners).toEqual(['127.0.0.1']);
  // The answer to the first message, then the verification of the last one.
  held.take();
  await until(() => held.owners.length > 0);
  expect(held.owners).toEqual(['127.0.0.1']);
  held.release();
  expect((await dialled).isOpen).toBe(true);
  silent.destroy();
});

test('07 §B3: a handshake whose connection is gone when its turn comes is not read', async () => {
  const held = new HeldTurns();
  await using listener = hostOf(1, { handshakeTurns: held, limits: defaultPeerLimits });
  await using dialer = hostOf(2);
  const address = await listener.listen(anyPort);
  held.hold();
  const gone = new AbortController();
  const { peerId } = identityOf(1);
  const dialled = dialer.dial({ ...address, peerId, signal: gone.signal });
  await until(() => held.owners.length > 0);
  gone.abort();
  await expect(dialled).rejects.toThrow();
  await turns(20);
  const read = vi.spyOn(NoiseHandshake.prototype, 'read');
  using _read = { [Symbol.dispose]: () => read.mockRestore() };
  held.release();
  await turns(20);
  expect(read).not.toHaveBeenCalled();
});
