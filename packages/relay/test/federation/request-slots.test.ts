/** Requests of one relay under way at once: answers that a relay does not read take bounded memory. */
import {
  defaultPeerLimits,
  ed25519Identity,
  type PeerConnection,
  PeerHost,
  type PeerStream,
} from '@posthouse/peer';
import { utf8 } from '@posthouse/protocol';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { RelayReply } from '../../src/dispatch/relay-dispatcher.ts';
import { RpcServer } from '../../src/federation/rpc/serve.ts';
import type { EligiblePeer } from '../../src/federation/verify-descriptor.ts';
import { defaultLimits } from '../../src/limits.ts';
import { ManualClock } from '../support/clock.ts';

const protocol = '/test/rpc/1.0.0';
const signal = new AbortController().signal;
const limits = { ...defaultPeerLimits, handshakesPerAddress: 64, handshakeBurst: 1_000 };

const identity = (byte: number) => ed25519Identity(new Uint8Array(32).fill(byte));

function hostOf(byte: number, serve: RpcServer['serve'] = async () => {}): PeerHost<EligiblePeer> {
  return new PeerHost<EligiblePeer>({
    identity: identity(byte),
    descriptor: () => `relay ${byte}`,
    admit: async ({ descriptor }) => ({ relayId: descriptor }) as EligiblePeer,
    protocols: new Map([[protocol, { streams: 64, serve }]]),
    limits,
    agent: 'test',
  });
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await turns(1);
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((done) => setImmediate(done));
}

/** Requests of relay 2 that the dispatcher was given, in order, and how many frames were read. */
let dispatched: string[];
let framesRead: number;
let faults: string[];
let reply: (text: string) => Promise<RelayReply>;
let server: PeerHost<EligiblePeer>;
let client: PeerHost<EligiblePeer>;
let port: number;

const rpcLimits = {
  ...defaultLimits,
  ...{ relayRequestsAtOnce: 8, relayBytes: 300_000, relayBytesBurst: 400_000 },
};
let clock: ManualClock;

beforeEach(async () => {
  clock = new ManualClock();
  dispatched = [];
  framesRead = 0;
  faults = [];
  const dispatcher = {
    answer: (frame: Uint8Array, { relayId }: { readonly relayId: string }) => {
      const text = Buffer.from(frame).toString();
      if (relayId === 'relay 3') return Promise.resolve({ kind: 'answer', text } as const);
      dispatched.push(text);
      return reply(text);
    },
  };
  const context = { clock, limits: rpcLimits };
  const counted = {
    add: (relayId: string, fault: string) => void faults.push(`${relayId} ${fault}`),
  };
  const rpc = new RpcServer(context, { dispatcher, faults: counted });
  server = hostOf(1, async (stream, connection) => {
    const readFrame = stream.readFrame.bind(stream);
    stream.readFrame = async () => {
      const frame = await readFrame();
      if (frame !== undefined) framesRead += 1;
      return frame;
    };
    await rpc.serve(stream, connection);
  });
  client = hostOf(2);
  ({ port } = await server.listen({ host: '127.0.0.1', port: 0 }));
});

afterEach(async () => {
  for (const { connections } of [server, client]) {
    for (const one of [...connections]) one.close('the test ends');
  }
  await client[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

const dial = (host: PeerHost<EligiblePeer>) =>
  host.dial({ host: '127.0.0.1', port, peerId: identity(1).peerId, signal });

async function send(connection: PeerConnection<EligiblePeer>, text: string): Promise<PeerStream> {
  const stream = await connection.openStream(protocol, { signal });
  await stream.writeFrame(utf8(text));
  stream.end();
  return stream;
}

const names = (count: number, prefix = 'request') =>
  Array.from({ length: count }, (_, index) => `${prefix} ${index}`);

async function sendAll(requests: readonly string[]): Promise<PeerStream[]> {
  const connection = await dial(client);
  // The first stream of a connection waits for agreement; requests of later ones arrive in order.
  const first = await connection.openStream(protocol, { signal });
  first.end();
  await first.readFrame();
  const before = framesRead;
  const streams: PeerStream[] = [];
  for (const request of requests) streams.push(await send(connection, request));
  await until(() => framesRead === before + requests.length);
  await turns(10);
  return streams;
}

/** Replies that wait until the test lets them. */
function heldReplies(): { release(): void } {
  const waiting: (() => void)[] = [];
  let isReleased = false;
  reply = (text) =>
    new Promise((resolve) => {
      const answer = () => resolve({ kind: 'answer', text });
      if (isReleased) answer();
      else waiting.push(answer);
    });
  return {
    release() {
      isReleased = true;
      for (const answer of waiting) answer();
    },
  };
}

const readText = async (stream: PeerStream) =>
  Buffer.from((await stream.readFrame()) ?? []).toString();

test('07 §C2: a second request while the first is under way resets the stream, and is a fault', async () => {
  const replies = heldReplies();
  const connection = await dial(client);
  const stream = await connection.openStream(protocol, { signal });
  await stream.writeFrame(utf8('first'));
  await until(() => dispatched.length === 1);
  await stream.writeFrame(utf8('second'));
  await expect(stream.readFrame()).rejects.toThrow(/reset/);
  replies.release();
  await until(() => faults.length > 0);
  expect(faults).toEqual(['relay 2 frame']);
  expect(dispatched).toEqual(['first']);
});

describe('07 §C9: requests of one relay', () => {
  test('above its bytes are reset and cost none: sending them again delays nothing', async () => {
    reply = async (text) => ({ kind: 'answer', text });
    const connection = await dial(client);
    for (let count = 0; count < 4; count += 1) {
      await (await send(connection, 'x'.repeat(100_000))).readFrame();
    }
    for (let time = 0; time < 3; time += 1) {
      const again = await send(connection, 'x'.repeat(200_000));
      await expect(again.readFrame()).rejects.toThrow(/reset/);
    }
    clock.advance(1);
    const large = await send(connection, 'x'.repeat(400_000));
    expect(await readText(large)).toHaveLength(400_000);
  });

  test('8 are under way at once; the others wait in their order, and other relays do not', async () => {
    const replies = heldReplies();
    const requests = names(64);
    const streams = await sendAll(requests);
    expect(dispatched).toEqual(requests.slice(0, 8));
    await using other = hostOf(3);
    const otherConnection = await dial(other);
    expect(await readText(await send(otherConnection, 'of relay 3'))).toBe('of relay 3');
    otherConnection.close('done');
    expect(dispatched).toHaveLength(8);
    replies.release();
    expect(await Promise.all(streams.map(readText))).toEqual(requests);
    expect(dispatched).toEqual(requests);
  });

  test('answers that it does not read: 8 wait here and at most 2 in the wire; no more are made', async () => {
    const answer = 'x'.repeat(limits.frameBytes);
    reply = async () => ({ kind: 'answer', text: answer });
    const streams = await sendAll(names(24));
    expect(dispatched.length).toBeGreaterThanOrEqual(8);
    expect(dispatched.length).toBeLessThanOrEqual(10);
    const answers = await Promise.all(streams.map((stream) => stream.readFrame()));
    expect(answers.map((frame) => frame?.length)).toEqual(streams.map(() => answer.length));
    expect(dispatched).toHaveLength(24);
  });

  test('after a lost connection, waiting ones are not executed, and all 8 can be again', async () => {
    const replies = heldReplies();
    await sendAll(names(64));
    const [connection] = client.connections;
    connection?.close('cut');
    await until(() => server.connections.size === 0);
    replies.release();
    await turns(10);
    expect(dispatched).toHaveLength(8);
    const later = heldReplies();
    await sendAll(names(16, 'later'));
    expect(dispatched.slice(8)).toEqual(names(8, 'later'));
    later.release();
    await until(() => dispatched.length === 24);
  });
});
