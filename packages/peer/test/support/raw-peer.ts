import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import {
  decodeHandshakePayload,
  encodeHandshakePayload,
  handshakeSigningInput,
} from '@posthouse/protocol/federation';
import { type OwnSide, secureOutbound } from '../../src/handshake.ts';
import type { PeerIdentity } from '../../src/index.ts';
import { encodeLines } from '../../src/multistream.ts';
import { agreeOnYamux } from '../../src/muxer.ts';
import { NoiseHandshake } from '../../src/noise/handshake.ts';
import { generateNoiseKeys } from '../../src/noise/keys.ts';
import { SecureChannel } from '../../src/secure-channel.ts';
import { SocketReader } from '../../src/socket-reader.ts';
import { undivided } from '../../src/turns.ts';
import { encodeHeader, frameFlag, frameType } from '../../src/yamux/frame.ts';
import { identityOf, testLimits } from './hosts.ts';

/** Opens a TCP connection, from another address of this machine if one is given. */
export async function openSocket(port: number, localAddress = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, localAddress });
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

const ignoring = { data: (bytes: Buffer) => bytes.length, drain() {}, closed() {} };

/** An admitted peer that sends any bytes as Yamux, and does only what a test says. */
export class RawPeer implements Disposable {
  readonly channel: SecureChannel;
  readonly closed: Promise<unknown>;
  received = Buffer.alloc(0);

  private constructor(channel: SecureChannel, rest: Uint8Array) {
    this.channel = channel;
    const { promise, resolve } = Promise.withResolvers<unknown>();
    this.closed = promise;
    const events = {
      data: (bytes: Buffer) => {
        this.received = Buffer.concat([this.received, bytes]);
        return bytes.length;
      },
      drain() {},
      closed: resolve,
    };
    channel.handOver(events, rest);
  }

  /**
   * Dials a host as the identity with a number.
   *
   * @param early Yamux frames sent with the proposal of Yamux
   */
  static async connect(
    port: number,
    target: Uint8Array,
    number = 9,
    early?: Uint8Array,
  ): Promise<RawPeer> {
    const socket = await openSocket(port);
    const identity = identityOf(number);
    const staticKeys = generateNoiseKeys();
    const own: OwnSide = {
      identity,
      staticKeys,
      signature: identity.sign(handshakeSigningInput(staticKeys.publicKey)),
      descriptor: () => '{"relay":"raw"}',
      decodePayload: decodeHandshakePayload,
      limits: testLimits,
      turns: undivided,
    };
    const { keys } = await secureOutbound(socket, own, target);
    if (early !== undefined) {
      const agreement = encodeLines('/multistream/1.0.0', '/yamux/1.0.0');
      const channel = new SecureChannel(socket, keys, ignoring);
      channel.write(Buffer.concat([agreement, early]));
      return new RawPeer(channel, new Uint8Array());
    }
    const options = { keys, isDialer: true, limits: testLimits };
    return agreeOnYamux(socket, options, (channel, rest) => new RawPeer(channel, rest));
  }

  /** Sends bytes in messages as large as they may be. */
  send(...parts: readonly Uint8Array[]): void {
    const bytes = Buffer.concat(parts);
    for (let offset = 0; offset < bytes.length; offset += 60_000) {
      this.channel.write(bytes.subarray(offset, offset + 60_000));
    }
  }

  [Symbol.dispose](): void {
    this.channel.pause();
    this.channel.destroy(new Error('the test is over') as never);
  }
}

/** A data frame. */
export function dataFrame(streamId: number, payload: Uint8Array, flags = 0): Buffer {
  const header = { type: frameType.data, flags, streamId, length: payload.length };
  return Buffer.concat([encodeHeader(header), payload]);
}

/** The frame that opens a stream, proposes a protocol and sends the first bytes. */
export function openingFrame(streamId: number, protocol: string, first: Uint8Array): Buffer {
  const proposal = encodeLines('/multistream/1.0.0', protocol);
  return dataFrame(streamId, Buffer.concat([proposal, first]), frameFlag.syn);
}

/** What a side may say in the handshake instead of the truth. */
export interface HandshakeLies {
  readonly identity?: PeerIdentity;
  /** The whole payload of message 3, made from the honest parts. */
  payload?(parts: Parameters<typeof encodeHandshakePayload>[0]): Uint8Array;
  /** Bytes of message 1 instead of a key. */
  readonly first?: Uint8Array;
}

/** Performs the handshake as a dialler that lies; resolves when the host has closed the socket. */
export async function lyingHandshake(port: number, lies: HandshakeLies): Promise<void> {
  const socket = await openSocket(port);
  const closed = once(socket, 'close');
  const reader = new SocketReader(socket);
  const write = (message: Uint8Array) => {
    const prefix = Buffer.from([message.length >> 8, message.length & 255]);
    socket.write(Buffer.concat([prefix, message]));
  };
  socket.write(encodeLines('/multistream/1.0.0', '/noise'));
  await reader.readExactly(encodeLines('/multistream/1.0.0', '/noise').length);
  const staticKeys = generateNoiseKeys();
  const noise = new NoiseHandshake({ role: 'initiator', staticKeys });
  const first = noise.write(new Uint8Array());
  write(lies.first ?? first);
  if (lies.first === undefined) {
    const prefix = await reader.readExactly(2);
    noise.read(await reader.readExactly(prefix.readUInt16BE(0)));
    const identity = lies.identity ?? identityOf(9);
    const parts = {
      identityKey: identity.publicKey,
      identitySignature: identity.sign(handshakeSigningInput(staticKeys.publicKey)),
      descriptor: '{"relay":"lying"}',
    };
    write(noise.write((lies.payload ?? encodeHandshakePayload)(parts)));
  }
  reader.release();
  socket.resume();
  await closed;
}
