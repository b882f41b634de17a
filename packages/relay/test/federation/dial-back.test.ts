/** A relay that dials others at their request, for `posthouse doctor` there (07 §B2). */
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { signDescriptor } from '@posthouse/protocol';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { network } from '../support/modules.ts';
import { freePort } from '../support/ports.ts';
import { patience, unlimitedHandshakes } from '../support/served-network.ts';
import { ServedRelay, servedRelay } from '../support/served-relay.ts';
import { ForeignRelay } from './foreign-relay.ts';

const protocol = '/svc/posthouse-doctor/1.0.0';

const relay = servedRelay({
  limits: {
    ...unlimitedHandshakes,
    federationAddressLookupRate: 1_000,
    dialBacks: 2,
    dialBackTimeout: 6_000,
  },
});
let open: AsyncDisposableStack;
let foreign: ForeignRelay;
beforeEach(async () => {
  open = new AsyncDisposableStack();
  foreign = open.use(await ForeignRelay.start(relay));
});
afterEach(() => open.disposeAsync());

interface Answer {
  readonly addresses?: { readonly address: string; readonly outcome: string }[];
  readonly listed?: boolean;
  readonly retry_after?: number;
}

/** Asks the relay under test to dial; @throws the stream's error if it was reset */
async function ask(from: ForeignRelay, request = new Uint8Array(0)): Promise<Answer> {
  const stream = await from.open(protocol);
  await stream.writeFrame(request);
  stream.end();
  const frame = await stream.readFrame();
  return JSON.parse(Buffer.from(frame ?? []).toString()) as Answer;
}

/** Presents a descriptor with these addresses, without Peer ID, to the relay under test. */
async function present(from: ForeignRelay, addresses: readonly string[]): Promise<void> {
  from.present = () =>
    signDescriptor(network, from.signer, {
      endpoints: [
        'https://127.0.0.1:1/svc/v1',
        ...addresses.map((address) => `${address}/p2p/${from.peerId}`),
      ],
      expires_at: relay.clock.now() + 86_400,
    });
  await from.dial();
}

/** A TCP port that accepts connections and never answers, as some firewalls do. */
class Silent implements AsyncDisposable {
  readonly sockets: Socket[] = [];
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((socket) => {
      socket.on('error', () => {}).resume();
      this.sockets.push(socket);
    });
  }

  static async start(): Promise<Silent> {
    const silent = new Silent();
    silent.#server.listen(0, '127.0.0.1');
    await once(silent.#server, 'listening');
    return open.use(silent);
  }

  get address(): string {
    return `/ip4/127.0.0.1/tcp/${(this.#server.address() as { port: number }).port}`;
  }

  /** Connections that are open now. */
  get pending(): number {
    return this.sockets.filter((socket) => !socket.closed).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    for (const socket of this.sockets) socket.destroy();
    await once(this.#server, 'close');
  }
}

const addressOf = (port: number) => `/ip4/127.0.0.1/tcp/${port}`;
const dialBacks = (outcome: string) =>
  relay.server.context.metrics.value('dial_backs', { outcome });

test('07 §B2: a relay that asks is dialled at the address of its descriptor, and told so', async () => {
  expect(await ask(foreign)).toEqual({
    addresses: [{ address: addressOf(foreign.port), outcome: 'reached' }],
    listed: true,
  });
  expect(dialBacks('dialled')).toBe(1);
});

test('07 §B5: connections made for that end at once, and the one before goes on', async () => {
  for (let asked = 0; asked < 4; asked += 1) {
    expect(await ask(foreign)).toMatchObject({ addresses: [{ outcome: 'reached' }] });
    relay.clock.advance(60);
  }
  // The one that it made itself, and perhaps one of the relay under test.
  await vi.waitFor(() => expect(foreign.connections).toBeLessThanOrEqual(2), patience);
  expect(foreign.connection.isOpen).toBe(true);
  const params = { account: 'none' };
  foreign.serveRpc = async (stream) => {
    const request = JSON.parse(Buffer.from((await stream.readFrame()) ?? []).toString());
    const error = { code: -32_000, message: 'none', data: { code: 'not_found' } };
    await stream.writeFrame(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: request.id, error })));
  };
  const answer = await relay.server.context.relayClient.call(
    foreign.relayId,
    'profile.resolve',
    params,
  );
  expect(answer.kind).toBe('refused');
});

test('07 §B2: a second request within a minute is not dialled, and one after it is', async () => {
  await ask(foreign);
  const { retry_after } = await ask(foreign);
  expect(retry_after).toBe(60);
  relay.clock.advance(59);
  expect(await ask(foreign)).toEqual({ retry_after: 1 });
  relay.clock.advance(1);
  expect(await ask(foreign)).toMatchObject({ addresses: [{ outcome: 'reached' }] });
  expect([dialBacks('dialled'), dialBacks('busy')]).toEqual([2, 2]);
});

test('07 §B2: a relay that asks on and on gets no more answers', async () => {
  const outcomes: string[] = [];
  for (let asked = 0; asked < 15; asked += 1) {
    outcomes.push(await ask(foreign).then(({ listed }) => (listed ? 'dialled' : 'busy'), String));
  }
  expect(outcomes.slice(0, 10)).toEqual(['dialled', ...Array(9).fill('busy')]);
  expect(outcomes.slice(10)).toEqual(Array(5).fill(expect.stringContaining('reset')));
  relay.clock.advance(1);
  expect(await ask(foreign)).toEqual({ retry_after: 59 });
});

test('07 §B2: a request that names an address is reset, counted, and dials nothing', async () => {
  const victim = await Silent.start();
  await expect(ask(foreign, Buffer.from(victim.address))).rejects.toThrow(/reset/);
  expect(relay.server.context.metrics.value('peer_faults', { fault: 'frame' })).toBe(1);
  expect(victim.sockets).toHaveLength(0);
  expect(dialBacks('dialled')).toBe(0);
});

test('07 §B2: a second frame after the request is reset', async () => {
  const stream = await foreign.open(protocol);
  await stream.write(Uint8Array.of(0, 0));
  await expect(stream.readFrame()).rejects.toThrow(/reset/);
});

test('07 §B2: a stream without a request ends without an answer', async () => {
  const stream = await foreign.open(protocol);
  stream.end();
  expect(await stream.readFrame()).toBeUndefined();
  expect(dialBacks('dialled')).toBe(0);
});

test('07 §B4: each address has its own outcome', async () => {
  const other = open.use(await ForeignRelay.start(relay, { byte: 0x92 }));
  const own = relay.server.peerPort as number;
  const ports = [foreign.port, await freePort(), other.port, own];
  await present(foreign, ports.map(addressOf));
  const outcomes = ['reached', 'refused', 'wrong_peer', 'wrong_peer'];
  expect(await ask(foreign)).toEqual({
    addresses: ports.map((port, index) => ({
      address: addressOf(port),
      outcome: outcomes[index],
    })),
    listed: true,
  });
});

test('07 §B2: an address that accepts and never answers times out with the time limit', async () => {
  const silent = await Silent.start();
  await present(foreign, [silent.address]);
  const answer = ask(foreign);
  await vi.waitFor(() => expect(silent.sockets).toHaveLength(1), patience);
  relay.clock.advance(5);
  expect(silent.pending).toBe(1);
  relay.clock.advance(1);
  expect(await answer).toEqual({
    addresses: [{ address: silent.address, outcome: 'timed_out' }],
    listed: true,
  });
  await vi.waitFor(() => expect(silent.pending).toBe(0), patience);
});

test('07 §B2: at most eight addresses are dialled, each once', async () => {
  const silent = await Promise.all(Array.from({ length: 9 }, () => Silent.start()));
  await present(
    foreign,
    silent.map(({ address }) => address),
  );
  const answer = ask(foreign);
  await vi.waitFor(() => {
    expect(silent.map(({ sockets }) => sockets.length)).toEqual([...Array(8).fill(1), 0]);
  }, patience);
  relay.clock.advance(6);
  expect((await answer).addresses).toHaveLength(8);
  expect(silent[8]?.sockets).toHaveLength(0);
});

test('07 §B2: above the dials at once, a relay is told when to ask again; it pays nothing', async () => {
  const silent = await Silent.start();
  const others = [open.use(await ForeignRelay.start(relay, { byte: 0x93 })), foreign];
  for (const one of others) await present(one, [silent.address]);
  const answers = others.map((one) => ask(one));
  await vi.waitFor(() => expect(silent.sockets).toHaveLength(2), patience);
  const third = open.use(await ForeignRelay.start(relay, { byte: 0x94 }));
  expect(await ask(third)).toEqual({ retry_after: 6 });
  relay.clock.advance(6);
  await Promise.all(answers);
  expect(await ask(third)).toMatchObject({ addresses: [{ outcome: 'reached' }] });
});

test('07 §B4: a relay that the registry does not list cannot ask', async () => {
  const unlisted = await ForeignRelay.start(relay, { byte: 0x95 });
  open.use(unlisted);
  await unlisted.list('suspended');
  relay.clock.advance(61);
  relay.server.wakeJobs();
  await vi.waitFor(() => expect(unlisted.connection.isOpen).toBe(false), patience);
  await expect(unlisted.dial()).rejects.toThrow();
  expect(dialBacks('dialled')).toBe(0);
});

test('07 §B2: private addresses are not dialled unless the operator allows them', async () => {
  await using strict = await ServedRelay.start({
    federation: { allowPrivate: false },
    limits: { ...unlimitedHandshakes, federationAddressLookupRate: 1_000 },
  });
  const asking = open.use(await ForeignRelay.start(strict, { byte: 0x96 }));
  const before = asking.connections;
  expect(await ask(asking)).toEqual({
    addresses: [{ address: addressOf(asking.port), outcome: 'refused' }],
    listed: true,
  });
  expect(asking.connections).toBe(before);
});
