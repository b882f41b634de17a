import { generateKeyPair } from '@libp2p/crypto/keys';
import { identify } from '@libp2p/identify';
import type { Libp2p, PrivateKey, Stream } from '@libp2p/interface';
import { noise } from '@libp2p/noise';
import { ping } from '@libp2p/ping';
import { tcp } from '@libp2p/tcp';
import { yamux } from '@libp2p/yamux';
import { multiaddr } from '@multiformats/multiaddr';
import { encodeFrame, FrameReader } from '@posthouse/protocol/federation';
import { createLibp2p } from 'libp2p';
import { descriptorExtension } from './descriptor-extension.ts';

/** The part of the stock codec that tests replace. */
interface PayloadCodec {
  encode(payload: unknown): Uint8Array;
}

/**
 * js-libp2p's own Noise cannot send extension 1025. Its handshake stays as it is; only the encoded
 * payload gets a second `extensions` with the descriptor, which merges with the first.
 */
const codecModule = new URL('./proto/payload.js', import.meta.resolve('@libp2p/noise')).href;
const { NoiseHandshakePayload }: { NoiseHandshakePayload: PayloadCodec } = await import(
  /* @vite-ignore */ codecModule
);
const stockEncode = NoiseHandshakePayload.encode;

/** What all nodes of js-libp2p send as descriptor; `undefined` for the stock payload. */
export function setDescriptor(descriptor: string | undefined): void {
  NoiseHandshakePayload.encode = (payload) =>
    descriptor === undefined
      ? stockEncode(payload)
      : Buffer.concat([stockEncode(payload), descriptorExtension(descriptor)]);
}

export type KeyKind = 'Ed25519' | 'secp256k1' | 'RSA';

const keyOf = (kind: KeyKind): Promise<PrivateKey> =>
  kind === 'RSA' ? generateKeyPair('RSA', 2_048) : generateKeyPair(kind);

/** A node of js-libp2p; stopped when disposed. */
export interface JsNode extends AsyncDisposable {
  readonly libp2p: Libp2p;
  /** Multihash bytes. */
  readonly peerId: Uint8Array;
  readonly port: number;
  dial(port: number, peerId: string): ReturnType<Libp2p['dial']>;
  /** Sends back the one frame of each stream of this protocol. */
  serveEcho(protocol: string): Promise<void>;
}

/** Starts a node that listens on a port of this machine. */
export async function startJsNode(kind: KeyKind = 'Ed25519'): Promise<JsNode> {
  const libp2p = await createLibp2p({
    privateKey: await keyOf(kind),
    addresses: { listen: ['/ip4/127.0.0.1/tcp/0'] },
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [yamux()],
    services: { identify: identify(), ping: ping() },
    connectionManager: { inboundConnectionThreshold: 1_000, maxIncomingPendingConnections: 1_000 },
  });
  const [address] = libp2p.getMultiaddrs();
  return {
    libp2p: libp2p as unknown as Libp2p,
    peerId: libp2p.peerId.toMultihash().bytes,
    port: Number(/\/tcp\/(\d+)/.exec(address?.toString() ?? '')?.[1]),
    dial: (port, peerId) => libp2p.dial(multiaddr(`/ip4/127.0.0.1/tcp/${port}/p2p/${peerId}`)),
    serveEcho: (protocol) =>
      libp2p.handle(protocol, async (stream) => {
        await send(stream, encodeFrame(await readFrame(stream)));
        await stream.close();
      }),
    async [Symbol.asyncDispose]() {
      await libp2p.stop();
    },
  };
}

async function send(stream: Stream, bytes: Uint8Array): Promise<void> {
  if (!stream.send(bytes)) await stream.onDrain();
}

/** Sends a frame on a stream of js-libp2p and reads the frame that comes back. */
export async function echoFrame(stream: Stream, message: Uint8Array): Promise<Uint8Array> {
  const sent = send(stream, encodeFrame(message)).then(() => stream.close());
  const answer = await readFrame(stream);
  await sent;
  return answer;
}

/** Reads to the first frame only: js-libp2p's iterator misses an end that came before it began. */
async function readFrame(stream: Stream): Promise<Uint8Array> {
  const reader = new FrameReader(1_048_576);
  for await (const piece of stream) {
    for (const frame of reader.push(piece.subarray())) return frame;
  }
  throw new Error('no frame came');
}
