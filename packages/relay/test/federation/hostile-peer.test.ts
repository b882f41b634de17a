import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { PeerStream } from '@posthouse/peer';
import { utf8 } from '@posthouse/protocol';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { patience, unlimitedHandshakes } from '../support/served-network.ts';
import { servedRelay } from '../support/served-relay.ts';
import { ForeignRelay } from './foreign-relay.ts';

const relay = servedRelay({
  limits: {
    ...unlimitedHandshakes,
    federationAddressLookupRate: 1_000,
  },
});
const ann = relay.person('ann');
let foreign: ForeignRelay;
beforeEach(async () => {
  foreign = await ForeignRelay.start(relay);
});
afterEach(() => foreign[Symbol.asyncDispose]());

const client = () => relay.server.context.relayClient;
const ask = () =>
  client().call(foreign.relayId, 'device.status', {
    account: ann.account,
    device_id: ann.device().deviceId,
  });
const faults = (fault: string) => relay.server.context.metrics.value('peer_faults', { fault });

/** Answers each request with these bytes as a frame. */
const answering = (bytes: Uint8Array) => async (stream: PeerStream) => {
  if ((await stream.readFrame()) === undefined) return;
  await stream.writeFrame(bytes);
};

const answer = (id: unknown, more: object = { result: { status: 'inactive' } }) =>
  utf8(JSON.stringify({ jsonrpc: '2.0', id, ...more }));

describe('07 §C3, §C4: an answer', () => {
  test('with the id of the request is taken', async () => {
    foreign.serveRpc = async (stream) => {
      const request = await stream.readFrame();
      if (request === undefined) return;
      await stream.writeFrame(answer(JSON.parse(Buffer.from(request).toString()).id));
    };
    expect(await ask()).toEqual({ kind: 'result', value: { status: 'inactive' } });
  });

  test.each([
    ['of another id', answer(4_711)],
    ['without a result', answer(1, {})],
    ['that is no JSON', utf8('{')],
    ['that is no UTF-8', Uint8Array.of(0xff, 0xfe)],
    ['that is empty', new Uint8Array()],
  ])('%s is invalid, and counted', async (_, bytes) => {
    foreign.serveRpc = answering(bytes);
    expect(await ask()).toMatchObject({ kind: 'invalid' });
    expect(faults('response')).toBe(1);
    expect(client().pausedUntil(foreign.relayId)).toBeUndefined();
  });

  test('above the limit of a frame is invalid, without reading it', async () => {
    foreign.serveRpc = async (stream) => {
      if ((await stream.readFrame()) === undefined) return;
      await stream.write(Uint8Array.of(0x81, 0x80, 0x40));
      await stream.readFrame();
    };
    expect(await ask()).toMatchObject({ kind: 'invalid' });
    expect(faults('frame')).toBe(1);
  });

  test('that is a reset stream, or its end, is an unknown outcome and pauses the relay', async () => {
    foreign.serveRpc = async (stream) => {
      if ((await stream.readFrame()) !== undefined) stream.reset();
    };
    expect(await ask()).toEqual({ kind: 'unknown' });
    expect(client().pausedUntil(foreign.relayId)).toBeGreaterThan(relay.clock.now());
    expect(await ask()).toEqual({ kind: 'unreachable' });
    const isFailing = () => relay.server.context.metrics.value('peers', { state: 'failing' });
    expect(isFailing()).toBe(1);
    relay.clock.advance(5);
    // An answer ends the failure, over the same connection.
    foreign.serveRpc = answering(answer(4_711));
    expect(await ask()).toMatchObject({ kind: 'invalid' });
    expect(isFailing()).toBe(0);
    expect(foreign.connections).toBe(1);
  });

  test('that does not come is an unknown outcome after the time limit', async () => {
    const received = Promise.withResolvers<void>();
    const never = Promise.withResolvers<void>();
    foreign.serveRpc = async (stream) => {
      if ((await stream.readFrame()) === undefined) return;
      received.resolve();
      await never.promise;
    };
    const answered = ask();
    await received.promise;
    relay.clock.advance(30);
    expect(await answered).toEqual({ kind: 'unknown' });
    expect(client().pausedUntil(foreign.relayId)).toBeGreaterThan(relay.clock.now());
    never.resolve();
  });

  test('is not awaited after the relay lost its admission', async () => {
    const received = Promise.withResolvers<void>();
    foreign.serveRpc = async (stream) => {
      if ((await stream.readFrame()) === undefined) return;
      received.resolve();
      await stream.readFrame();
    };
    const answered = ask();
    await received.promise;
    await foreign.list('suspended');
    relay.clock.advance(61);
    relay.server.wakeJobs();
    expect(await answered).toEqual({ kind: 'unknown' });
    expect(await foreign.connection.closed).toMatchObject({ name: 'PeerError' });
    relay.clock.advance(900);
    expect(await ask()).toEqual({ kind: 'unreachable' });
  });
});

describe('07 §C9: a relay that cannot be reached', () => {
  test('is paused for all calls, longer after each failure, and is back when it connects', async () => {
    await foreign.stop();
    await vi.waitFor(() => {
      expect(relay.server.context.metrics.value('peers', { state: 'connected' })).toBe(0);
    }, patience);
    expect(await ask()).toEqual({ kind: 'unreachable' });
    const first = client().pausedUntil(foreign.relayId) as number;
    expect(first - relay.clock.now()).toBeGreaterThanOrEqual(3);
    expect(first - relay.clock.now()).toBeLessThanOrEqual(5);
    relay.clock.advance(5);
    expect(await ask()).toEqual({ kind: 'unreachable' });
    const second = client().pausedUntil(foreign.relayId) as number;
    expect(second - relay.clock.now()).toBeGreaterThanOrEqual(5);
    expect(relay.server.context.metrics.value('peers', { state: 'failing' })).toBe(1);
    await foreign.listen();
    await foreign.dial();
    await vi.waitFor(() => {
      expect(client().pausedUntil(foreign.relayId)).toBeUndefined();
    }, patience);
    expect(relay.server.context.metrics.value('peers', { state: 'failing' })).toBe(0);
    foreign.serveRpc = answering(answer(4_711));
    expect(await ask()).toMatchObject({ kind: 'invalid' });
  });

  test('is dialled once for all calls that wait', async () => {
    await foreign.stop();
    await vi.waitFor(() => {
      expect(relay.server.context.metrics.value('peers', { state: 'connected' })).toBe(0);
    }, patience);
    await foreign.listen();
    foreign.serveRpc = answering(answer(4_711));
    const answers = await Promise.all([ask(), ask(), ask()]);
    expect(answers).toEqual(answers.map(() => expect.objectContaining({ kind: 'invalid' })));
    expect(foreign.connections).toBe(1);
  });

  test('is stored with its failure in words, which a restart knows', async () => {
    await foreign.stop();
    await vi.waitFor(() => {
      expect(relay.server.context.metrics.value('peers', { state: 'connected' })).toBe(0);
    }, patience);
    await ask();
    const until = client().pausedUntil(foreign.relayId);
    await relay.restart();
    expect(client().pausedUntil(foreign.relayId)).toBe(until);
    const [row] = await relay.server.context.storage.read((tx) =>
      tx.all('SELECT failures, last_error FROM relays WHERE relay_id = ?', foreign.relayId),
    );
    expect(row).toMatchObject({ failures: 1, last_error: expect.stringMatching(/\w/) });
  });
});

test('07 §C9: a relay with too many invalid messages is dropped and refused for a while', async () => {
  foreign.serveRpc = answering(utf8('{'));
  for (let count = 0; count < 20; count += 1)
    expect(await ask()).toMatchObject({ kind: 'invalid' });
  await foreign.connection.closed;
  await expect(foreign.dial()).rejects.toThrow();
  // Refused, it is no eligible peer: other relays are not told of it (07 §B4).
  expect(relay.server.context.metrics.value('peers', { state: 'eligible' })).toBe(0);
  relay.clock.advance(600);
  await foreign.dial();
  expect(await ask()).toMatchObject({ kind: 'invalid' });
});

describe('07 §B3: a relay that hangs', () => {
  /** Replaces the foreign relay by a TCP server on its port. */
  async function replaced(serve: (socket: Socket) => void): Promise<Server> {
    await foreign.stop();
    await vi.waitFor(() => {
      expect(relay.server.context.metrics.value('peers', { state: 'connected' })).toBe(0);
    }, patience);
    const server = createServer(serve);
    server.listen(foreign.port, '127.0.0.1');
    await once(server, 'listening');
    return server;
  }

  test.each([
    ['before the handshake', ''],
    ['after it agreed on Noise', '\x13/multistream/1.0.0\n\x07/noise\n'],
  ])('%s is unreachable after a time limit, for all calls at once', async (_, greeting) => {
    const accepted = Promise.withResolvers<void>();
    const sockets = new Set<Socket>();
    const server = await replaced((socket) => {
      sockets.add(socket.on('error', () => {}));
      socket.write(greeting);
      accepted.resolve();
    });
    const answers = [ask(), ask(), ask()];
    await accepted.promise;
    relay.clock.advance(30);
    expect(await Promise.all(answers)).toEqual(answers.map(() => ({ kind: 'unreachable' })));
    expect(sockets.size).toBe(1);
    const pause = (client().pausedUntil(foreign.relayId) as number) - relay.clock.now();
    // One failure, whatever number of calls waited for the dial.
    expect(pause).toBeLessThanOrEqual(5);
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });

  test('during the handshake of its own dial delays no other relay', async () => {
    const { peerPort = 0 } = relay.server;
    const silent = Array.from({ length: 30 }, () => connect(peerPort, '127.0.0.1'));
    await Promise.all(silent.map((socket) => once(socket, 'connect')));
    await using other = await ForeignRelay.start(relay, { byte: 0x92 });
    expect(other.connection.isOpen).toBe(true);
    for (const socket of silent) socket.destroy();
  });
});
