/** What each side of a handshake refuses (07 §B3, §B4). */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { encodePeerKey, type PeerKey } from '@posthouse/protocol/federation';
import { describe, expect, test } from 'vitest';
import { peerIdOf } from '../src/identity.ts';
import type { PeerHost, PeerHostOptions, PeerIdentity } from '../src/index.ts';
import { encodeLines } from '../src/multistream.ts';
import { hex } from './support/bytes.ts';
import { ManualClock } from './support/clock.ts';
import { anyPort, forever, hostOf, identityOf, testLimits, until } from './support/hosts.ts';
import { type HandshakeLies, lyingHandshake, openSocket } from './support/raw-peer.ts';

/** A listening host with the reasons of its refusals. */
function watchedHost(options: Partial<PeerHostOptions<string>> = {}) {
  const refusals: unknown[] = [];
  const observer = { refused: (_: string, error: unknown) => void refusals.push(error) };
  return { host: hostOf(1, { observer, ...options }), refusals };
}

const spki = (key: KeyObject) => key.export({ format: 'der', type: 'spki' });

/** An identity of another kind of key than relays of this project have. */
function identityOfKind(type: PeerKey['type']): PeerIdentity {
  const curve = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve });
  const { privateKey, publicKey } =
    type === 'rsa'
      ? generateKeyPairSync('rsa', { modulusLength: 2_048 })
      : curve(type === 'ecdsa' ? 'prime256v1' : 'secp256k1');
  let data: Uint8Array = spki(publicKey);
  if (type === 'secp256k1') {
    const point = data.subarray(-64);
    data = Buffer.concat([
      Buffer.of((point[63] as number) % 2 === 0 ? 2 : 3),
      point.subarray(0, 32),
    ]);
  }
  const key: PeerKey = { type, data };
  return {
    peerId: peerIdOf(key),
    publicKey: encodePeerKey(key),
    sign: (message) => sign('sha256', message, privateKey),
  };
}

test.each(['rsa', 'secp256k1', 'ecdsa'] as const)(
  '07 §B2: peers with keys of kind %s are authenticated, as dialler and as listener',
  async (kind) => {
    const identity = identityOfKind(kind);
    await using ours = hostOf(1);
    await using theirs = hostOf(2, { identity });
    const address = await ours.listen(anyPort);
    const other = await theirs.listen(anyPort);
    const { peerId } = identityOf(1);
    await theirs.dial({ ...address, peerId, signal: forever });
    const connection = await ours.dial({ ...other, peerId: identity.peerId, signal: forever });
    expect(hex(connection.remote.peerId)).toBe(hex(identity.peerId));
    expect([...ours.connections].map(({ remote }) => hex(remote.peerId))).toEqual([
      hex(identity.peerId),
      hex(identity.peerId),
    ]);
  },
);

const bytesField = (number: number, value: Uint8Array) =>
  Buffer.concat([Buffer.of(number * 8 + 2, value.length), value]);
const honest = { identityKey: 1, identitySignature: 2 } as const;

describe('a dialling peer is refused', () => {
  const forged: PeerIdentity = { ...identityOf(9), sign: (message) => identityOf(8).sign(message) };
  const changed: PeerIdentity = {
    ...identityOf(9),
    sign: (message) => identityOf(9).sign(Buffer.concat([message, Buffer.of(0)])),
  };
  const cases: [string, HandshakeLies, string][] = [
    ['with a signature of another key', { identity: forged }, 'does not verify'],
    ['with a signature of other bytes', { identity: changed }, 'does not verify'],
    [
      'without a descriptor',
      {
        payload: ({ identityKey, identitySignature }) =>
          Buffer.concat([
            bytesField(honest.identityKey, identityKey),
            bytesField(honest.identitySignature, identitySignature),
            bytesField(4, new Uint8Array()),
          ]),
      },
      'relay_descriptor',
    ],
    [
      'with a key of an unknown kind',
      {
        payload: ({ identitySignature }) =>
          Buffer.concat([
            bytesField(honest.identityKey, Buffer.from('08041201ff', 'hex')),
            bytesField(honest.identitySignature, identitySignature),
            bytesField(4, Buffer.from('8a40027b7d', 'hex')),
          ]),
      },
      'peer key.type',
    ],
    ['with bytes that are no protobuf', { payload: () => Buffer.of(0xff) }, 'handshake payload'],
    ['with an empty payload', { payload: () => new Uint8Array() }, 'identity_key'],
    ['with a first message that is too short', { first: Buffer.alloc(31) }, 'too short'],
    ['with a first key of small order', { first: Buffer.alloc(32) }, 'X25519'],
    ['with an empty first message', { first: Buffer.alloc(0) }, 'too short'],
  ];
  test.each(cases)('07 §B3: %s', async (_, lies, reason) => {
    const { host, refusals } = watchedHost();
    await using listener: PeerHost<string> = host;
    const { port } = await listener.listen(anyPort);
    await lyingHandshake(port, lies);
    await until(() => refusals.length === 1);
    expect(refusals[0]).toMatchObject({
      code: 'protocol',
      message: expect.stringContaining(reason),
    });
    expect(listener.connections.size).toBe(0);
  });

  test('07 §B3: of repeated fields the last one counts, submessages merge', async () => {
    const { host, refusals } = watchedHost();
    await using listener: PeerHost<string> = host;
    const { port } = await listener.listen(anyPort);
    const text = Buffer.from('{"relay":"last"}');
    const payload: HandshakeLies['payload'] = ({ identityKey, identitySignature }) =>
      Buffer.concat([
        bytesField(honest.identityKey, Buffer.of(1)),
        bytesField(4, Buffer.concat([Buffer.from('8a4001', 'hex'), Buffer.of(0x7b)])),
        bytesField(honest.identityKey, identityKey),
        bytesField(honest.identitySignature, identitySignature),
        bytesField(4, Buffer.concat([Buffer.of(0x8a, 0x40, text.length), text])),
        bytesField(4, new Uint8Array()),
        bytesField(9, Buffer.from('unknown')),
      ]);
    const finished = lyingHandshake(port, { payload });
    const seen = Promise.withResolvers<string>();
    await using other = hostOf(2, {
      admit: async ({ descriptor }) => {
        seen.resolve(descriptor);
        return descriptor;
      },
    });
    const address = await other.listen(anyPort);
    const second = lyingHandshake(address.port, { payload });
    expect(await seen.promise).toBe('{"relay":"last"}');
    expect(refusals).toEqual([]);
    await listener[Symbol.asyncDispose]();
    await other[Symbol.asyncDispose]();
    await Promise.all([finished, second]);
  });
});

test('07 §B4: another peer at the dialled address is refused, and gets no descriptor', async () => {
  const { host, refusals } = watchedHost();
  await using listener: PeerHost<string> = host;
  await using dialer = hostOf(2);
  const address = await listener.listen(anyPort);
  await expect(
    dialer.dial({ ...address, peerId: identityOf(3).peerId, signal: forever }),
  ).rejects.toMatchObject({ code: 'wrong_peer' });
  await until(() => refusals.length === 1);
  expect(refusals[0]).toMatchObject({ code: 'closed' });
});

test('07 §B5: a dial that ends at the own Peer ID is closed quietly', async () => {
  const { host, refusals } = watchedHost();
  await using own: PeerHost<string> = host;
  const address = await own.listen(anyPort);
  const { peerId } = identityOf(1);
  await expect(own.dial({ ...address, peerId, signal: forever })).rejects.toMatchObject({
    code: 'own_peer',
  });
  expect(own.connections.size).toBe(0);
  expect(refusals.filter((error) => (error as { code: string }).code !== 'closed')).toEqual([]);
});

test('07 §B2: other security protocols are answered with na', async () => {
  await using listener = hostOf(1);
  const { port } = await listener.listen(anyPort);
  const socket = await openSocket(port);
  socket.write(encodeLines('/multistream/1.0.0', '/plaintext/2.0.0', '/tls/1.0.0'));
  let answer = Buffer.alloc(0);
  socket.on('data', (bytes) => {
    answer = Buffer.concat([answer, bytes as Buffer]);
  });
  await until(() => answer.length >= 28);
  expect(hex(answer)).toBe(hex(encodeLines('/multistream/1.0.0', 'na', 'na')));
  socket.destroy();
});

test('07 §B2: a listener that has no /noise is not_supported', async () => {
  const server = createServer((socket) => socket.end(encodeLines('/multistream/1.0.0', 'na')));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  await using dialer = hostOf(2);
  const address = { host: '127.0.0.1', port, peerId: identityOf(1).peerId, signal: forever };
  await expect(dialer.dial(address)).rejects.toMatchObject({ code: 'not_supported' });
  server.close();
  await expect(dialer.dial(address)).rejects.toMatchObject({ code: 'unreachable' });
});

test('07 §B3: a dial is given up when its time or its signal ends, or the host stops', async () => {
  const server = createServer(() => {});
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const clock = new ManualClock();
  await using dialer = hostOf(2, { clock });
  const address = { host: '127.0.0.1', port, peerId: identityOf(1).peerId };
  const accepted = once(server, 'connection');
  const late = expect(dialer.dial({ ...address, signal: forever })).rejects.toMatchObject({
    code: 'timeout',
  });
  await accepted;
  await until(() => {
    clock.advance(1_000);
    return clock.monotonic() > testLimits.handshakeTime * 3;
  });
  await late;
  const controller = new AbortController();
  const aborted = dialer.dial({ ...address, signal: controller.signal });
  controller.abort(new Error('not needed any more'));
  await expect(aborted).rejects.toThrow('not needed any more');
  const stopped = dialer.dial({ ...address, signal: forever });
  await dialer[Symbol.asyncDispose]();
  await expect(stopped).rejects.toThrow('this relay stops');
  server.close();
});

test('07 §B4: an admission that takes too long is aborted and the peer refused', async () => {
  const clock = new ManualClock();
  const asked = Promise.withResolvers<AbortSignal>();
  const { host, refusals } = watchedHost({
    clock,
    admit: (_, signal) => {
      asked.resolve(signal);
      return new Promise(() => {});
    },
  });
  await using listener: PeerHost<string> = host;
  await using dialer = hostOf(2);
  const address = await listener.listen(anyPort);
  const dialled = dialer.dial({ ...address, peerId: identityOf(1).peerId, signal: forever });
  const signal = await asked.promise;
  clock.advance(testLimits.admissionTime);
  expect(signal.aborted).toBe(true);
  await expect(dialled).rejects.toMatchObject({ code: 'closed' });
  expect(refusals[0]).toMatchObject({ code: 'timeout' });
});

test('07 §B5: addresses that must not be dialled are not, by number or by name', async () => {
  await using dialer = hostOf(2, { mayDial: (address) => !/^(127\.|::1)/.test(address) });
  for (const host of ['127.0.0.1', 'localhost', '::1']) {
    const address = { host, port: 9, peerId: identityOf(1).peerId, signal: forever };
    await expect(dialer.dial(address)).rejects.toThrow('be dialled');
  }
});

test('a connection of an address that is refused is closed before its handshake', async () => {
  await using listener = hostOf(1, { mayAccept: (address) => !address.includes('127.0.0.1') });
  const { port } = await listener.listen(anyPort);
  const socket = connect({ host: '127.0.0.1', port });
  let received = 0;
  socket.on('data', ({ length }) => {
    received += length;
  });
  socket.on('error', () => {});
  await new Promise((resolve) => socket.once('close', resolve));
  expect(received).toBe(0);
});

test('07 §B5: connections are limited in all and for each peer', async () => {
  const limits = { ...testLimits, connections: 3, connectionsPerPeer: 2 };
  await using listener = hostOf(1, { limits });
  const address = {
    ...(await listener.listen(anyPort)),
    peerId: identityOf(1).peerId,
    signal: forever,
  };
  await using first = hostOf(2);
  await using second = hostOf(3);
  await first.dial(address);
  await first.dial(address);
  await expect(first.dial(address)).rejects.toMatchObject({ code: 'closed' });
  await second.dial(address);
  await expect(second.dial(address)).rejects.toMatchObject({ code: 'closed' });
  expect(listener.connections.size).toBe(3);
});
