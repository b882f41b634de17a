/** The beginning of a connection: /noise is agreed, then the handshake with descriptors (07 §B3). */
import type { Socket } from 'node:net';
import {
  decodePeerKey,
  encodeHandshakePayload,
  type HandshakePayload,
  handshakeSigningInput,
} from '@posthouse/protocol/federation';
import { addressKey } from './address-key.ts';
import { PeerError } from './errors.ts';
import { type PeerIdentity, peerIdOf, verifyPeerSignature } from './identity.ts';
import type { PeerLimits } from './limits.ts';
import { Proposal, Selection } from './multistream.ts';
import { maxNoiseMessage } from './noise/cipher.ts';
import { NoiseHandshake, type NoiseKeys } from './noise/handshake.ts';
import type { NoiseKeyPair } from './noise/keys.ts';
import { SocketReader } from './socket-reader.ts';
import { inTurn, type WorkTurns } from './turns.ts';

const noiseProtocol = '/noise';
const noPayload = new Uint8Array(0);

/** Peer IDs are public: no constant time is needed. */
const isEqual = (a: Uint8Array, b: Uint8Array) => Buffer.compare(a, b) === 0;

/** What this side brings to a handshake. */
export interface OwnSide {
  readonly identity: PeerIdentity;
  readonly staticKeys: NoiseKeyPair;
  /** The peer key's signature of the static key. */
  readonly signature: Uint8Array;
  readonly descriptor: () => string | Promise<string>;
  /** Decodes the other side's payload; throws for one without a descriptor (07 §B3). */
  readonly decodePayload: (payload: Uint8Array) => HandshakePayload;
  readonly limits: PeerLimits;
  /** Divides the cryptography over turns of the event loop. */
  readonly turns: WorkTurns;
}

/** What a finished handshake proved. */
export interface SecuredPeer {
  readonly keys: NoiseKeys;
  /** Multihash bytes. */
  readonly peerId: Uint8Array;
  readonly descriptor: string;
}

/**
 * Performs the handshake as the dialling side. The own descriptor is sent only to the dialled peer.
 *
 * @throws PeerError `wrong_peer` or `own_peer` if the peer has another Peer ID than expected
 */
export async function secureOutbound(
  socket: Socket,
  own: OwnSide,
  expected: Uint8Array,
): Promise<SecuredPeer> {
  const reader = new SocketReader(socket);
  const proposal = new Proposal(noiseProtocol, own.limits);
  socket.write(proposal.request);
  for (;;) {
    const rest = proposal.receive(await reader.readSome());
    if (rest === undefined) continue;
    reader.unread(rest);
    break;
  }
  const noise = new NoiseHandshake({ role: 'initiator', staticKeys: own.staticKeys });
  try {
    writeMessage(socket, noise.write(noPayload));
    const remote = identify(own, noise.read(await readMessage(reader)), noise.remoteStatic);
    if (isEqual(remote.peerId, own.identity.peerId)) {
      throw new PeerError('own_peer', 'the address leads to this relay itself');
    }
    if (!isEqual(remote.peerId, expected)) {
      throw new PeerError('wrong_peer', 'the peer has another Peer ID than expected');
    }
    writeMessage(socket, noise.write(await payloadOf(own)));
    reader.release();
    return { keys: noise.finish(), ...remote };
  } finally {
    noise.destroy();
  }
}

/** Performs the handshake as the accepting side. @throws PeerError `own_peer` for the own key */
export async function secureInbound(socket: Socket, own: OwnSide): Promise<SecuredPeer> {
  const reader = new SocketReader(socket);
  const selection = new Selection((protocol) => protocol === noiseProtocol, own.limits);
  for (;;) {
    const { reply, agreed } = selection.receive(await reader.readSome());
    if (reply.length > 0) socket.write(reply);
    if (agreed === undefined) continue;
    reader.unread(agreed.rest);
    break;
  }
  const noise = new NoiseHandshake({ role: 'responder', staticKeys: own.staticKeys });
  const owner = addressKey(socket.remoteAddress ?? '');
  const inOwnTurn = <T>(work: () => T) =>
    inTurn(own.turns, owner, () => {
      if (socket.destroyed) throw new PeerError('closed', 'the connection was lost');
      return work();
    });
  try {
    const first = await readMessage(reader);
    const payload = await payloadOf(own);
    const answer = await inOwnTurn(() => {
      noise.read(first);
      return noise.write(payload);
    });
    writeMessage(socket, answer);
    const last = await readMessage(reader);
    const remote = await inOwnTurn(() => identify(own, noise.read(last), noise.remoteStatic));
    if (isEqual(remote.peerId, own.identity.peerId)) {
      throw new PeerError('own_peer', 'this relay dialled itself');
    }
    reader.release();
    return { keys: noise.finish(), ...remote };
  } finally {
    noise.destroy();
  }
}

async function payloadOf({ identity, signature, descriptor }: OwnSide): Promise<Uint8Array> {
  return encodeHandshakePayload({
    identityKey: identity.publicKey,
    identitySignature: signature,
    descriptor: await descriptor(),
  });
}

/** Verifies a payload: one parse for key, signature and descriptor (07 §B3). */
function identify(
  { decodePayload }: OwnSide,
  payload: Uint8Array,
  noiseKey: Uint8Array,
): { peerId: Uint8Array; descriptor: string } {
  try {
    const { identityKey, identitySignature, descriptor } = decodePayload(payload);
    const key = decodePeerKey(identityKey);
    if (!verifyPeerSignature(key, handshakeSigningInput(noiseKey), identitySignature)) {
      throw new PeerError('protocol', 'identity_sig does not verify');
    }
    return { peerId: peerIdOf(key), descriptor };
  } catch (cause) {
    if (cause instanceof PeerError) throw cause;
    throw new PeerError('protocol', `handshake payload: ${(cause as Error).message}`, { cause });
  }
}

async function readMessage(reader: SocketReader): Promise<Uint8Array> {
  const prefix = await reader.readExactly(2);
  return reader.readExactly(prefix.readUInt16BE(0));
}

function writeMessage(socket: Socket, message: Uint8Array): void {
  const prefix = Buffer.allocUnsafe(2);
  prefix.writeUInt16BE(Math.min(message.length, maxNoiseMessage), 0);
  socket.write(Buffer.concat([prefix, message]));
}
