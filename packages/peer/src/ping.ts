/** ping 1.0.0 of libp2p: repeats what the peer sends. Peers in Rust leave if it is not answered. */
import type { PeerStream } from './peer-stream.ts';

export const pingProtocol = '/ipfs/ping/1.0.0';

/** Serves a stream: sends back all bytes until the peer ends it. */
export async function servePing(stream: PeerStream): Promise<void> {
  for await (const bytes of stream) await stream.write(bytes);
}
