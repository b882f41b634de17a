/** A handshake with any payload, valid or not, with a request that follows before any answer. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import type { PeerIdentity } from '@posthouse/peer';
import {
  encodeHeader,
  encodeLines,
  frameFlag,
  frameType,
  generateNoiseKeys,
  NoiseHandshake,
  Proposal,
  SecureChannel,
  SocketReader,
} from '@posthouse/peer/raw';
import type { Libp2pAddress } from '@posthouse/protocol';
import {
  decodeHandshakePayload,
  encodeFrame,
  encodeHandshakePayload,
  type HandshakePayload,
  handshakeSigningInput,
} from '@posthouse/protocol/federation';
import { Violation } from '../assert.ts';

/** Makes the payload of message 3. */
export type MakePayload = (proof: {
  readonly identity: PeerIdentity;
  /** A valid signature of the Noise key by the peer key. */
  readonly signature: Uint8Array;
}) => Uint8Array;

/** Makes a valid payload with a descriptor, which need not be valid. */
export function payloadWith(descriptor: string): MakePayload {
  return ({ identity, signature }) =>
    encodeHandshakePayload({
      identityKey: identity.publicKey,
      identitySignature: signature,
      descriptor,
    });
}

export interface RawHandshake {
  readonly address: Libp2pAddress;
  readonly identity: PeerIdentity;
  readonly payload: MakePayload;
  /** Name of the protocol of relay RPC. */
  readonly protocol: string;
}

/** What the relay under test made of a handshake. */
export interface HandshakeResult {
  /** Whether the request that followed was answered; if not, the relay closed the connection. */
  readonly isAdmitted: boolean;
  /** Payload of the relay's message 2. */
  readonly payload: HandshakePayload;
}

/** Bytes of a line or prefix of multistream-select. */
const negotiation = { negotiationBytes: 1_024, negotiationProposals: 8 };

/** Milliseconds for a handshake and its answer. */
const handshakeTime = 30_000;

/** How often a connection that a rate limit closed is tried again, one second apart. */
const attempts = 30;

const request = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"profile.resolve","params":{}}');

/**
 * Performs a handshake as the dialling side, and sends a request with message 3, before the relay
 * can have decided.
 *
 * @throws Violation if the relay neither answers nor closes the connection in time
 */
export async function performHandshake(handshake: RawHandshake): Promise<HandshakeResult> {
  for (let attempt = 1; ; attempt += 1) {
    const { host, port } = handshake.address;
    const socket = connect({ host, port, noDelay: true });
    socket.on('error', () => {});
    const signal = AbortSignal.timeout(handshakeTime);
    try {
      await once(socket, 'connect', { signal });
      const secured = await secure(socket, handshake);
      if (secured !== undefined) return await admission(socket, secured, handshake.protocol);
    } catch (error) {
      if (signal.aborted) throw new Violation('a handshake gets on within 30 s');
      throw error;
    } finally {
      socket.destroy();
    }
    if (attempt === attempts) throw new Violation('the relay answers a handshake');
    await setTimeout(1_000);
  }
}

type Secured = Awaited<ReturnType<typeof exchange>>;

/** Returns `undefined` if the relay closes before its message 2: a rate limit. */
async function secure(socket: Socket, handshake: RawHandshake): Promise<Secured | undefined> {
  try {
    return await exchange(socket, handshake);
  } catch (error) {
    if (error instanceof ClosedEarly) return undefined;
    throw error;
  }
}

class ClosedEarly extends Error {}

async function exchange(socket: Socket, { identity, payload }: RawHandshake) {
  const reader = new SocketReader(socket);
  const early = async (read: Promise<Buffer>) =>
    await read.catch((cause: unknown) => {
      throw new ClosedEarly('closed before message 2', { cause });
    });
  const proposal = new Proposal('/noise', negotiation);
  socket.write(proposal.request);
  for (;;) {
    const rest = proposal.receive(await early(reader.readSome()));
    if (rest === undefined) continue;
    reader.unread(rest);
    break;
  }
  const keys = generateNoiseKeys();
  const noise = new NoiseHandshake({ role: 'initiator', staticKeys: keys });
  writeMessage(socket, noise.write(new Uint8Array()));
  const prefix = await early(reader.readExactly(2));
  const theirs = noise.read(await early(reader.readExactly(prefix.readUInt16BE(0))));
  const signature = identity.sign(handshakeSigningInput(keys.publicKey));
  writeMessage(socket, noise.write(payload({ identity, signature })));
  reader.release();
  return { keys: noise.finish(), payload: decodeHandshakePayload(theirs) };
}

function writeMessage(socket: Socket, message: Uint8Array): void {
  const prefix = Buffer.alloc(2);
  prefix.writeUInt16BE(message.length);
  socket.write(Buffer.concat([prefix, message]));
}

/** Sends a request at once, and waits for its answer or the end of the connection. */
async function admission(
  socket: Socket,
  { keys, payload }: Secured,
  protocol: string,
): Promise<HandshakeResult> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  let received = Buffer.alloc(0);
  const channel = new SecureChannel(socket, keys, {
    data(bytes) {
      received = Buffer.concat([received, bytes]);
      if (received.includes('"jsonrpc"')) resolve(true);
      return bytes.length;
    },
    drain() {},
    closed: () => resolve(received.includes('"jsonrpc"')),
  });
  channel.write(new Proposal('/yamux/1.0.0', negotiation).request);
  const data = Buffer.concat([encodeLines('/multistream/1.0.0', protocol), encodeFrame(request)]);
  const header = { type: frameType.data, flags: frameFlag.syn, streamId: 1, length: data.length };
  channel.write(Buffer.concat([encodeHeader(header), data]));
  const timer = new AbortController();
  const late = setTimeout(handshakeTime, undefined, { signal: timer.signal }).then(
    () => {
      throw new Violation('the relay answers or closes the connection within 30 s');
    },
    () => false,
  );
  try {
    return { isAdmitted: await Promise.race([promise, late]), payload };
  } finally {
    timer.abort();
  }
}
